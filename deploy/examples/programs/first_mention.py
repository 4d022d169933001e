# Where a word is first mentioned in a folder of documents, and every mention as a table.
async def main(word, folder="docs/guide"):
    found = await mcp.files.search(path=folder, text=word)
    page = await mcp.files.read_file(path=found.matches[0].path)
    table = await mcp.files.format(data=found.matches, syntax="markdown_table")
    return {"page": page.path, "lines": page.lines, "mentions": found.count, "table": table.text}
