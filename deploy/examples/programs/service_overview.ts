// Which service a configuration file is about, and what else in the folder names it.
async function main({ file, folder = "config" }) {
  const text = await mcp.files.read_file({ path: file });
  const parsed = await mcp.files.parse_json({ text: text.text });
  const [mentions, listing] = await Promise.all([
    mcp.files.search({ path: folder, text: parsed.value.name }),
    mcp.files.list_dir({ path: folder }),
  ]);
  return { service: parsed.value.name, mentions: mentions.count, files: listing.count };
}
