"""What a model is told about this server when it connects."""

INSTRUCTIONS = """\
PML runs workflows of tool calls. It records every step, runs independent calls at the same time, and runs
early what is safe and likely needed.

1. pml_discover finds the tools and learned capabilities that fit an intent, with their schemas. A tool's id
   is `server:name`; a program calls it as `mcp.<server>.<name>(...)`.
2. pml_execute runs `code` (Python or TypeScript: `await mcp.<server>.<tool>(...)`) or a `dag` of tasks. Say
   what it is for in `intent`: what succeeded is a capability then, and the same intent with a `context` of
   its parameters runs it again without code. Put several calls into one run: only what the program returns
   comes back. Give a `run_id` of your own where you may have to ask again: the same id with the same content
   is run once.
3. `completed`, `failed` and `aborted` are ends. `queued` and `running`: look again with pml_get_run after
   `poll_after_ms`; do not begin it again. `waiting`: see `waits_for`. At a checkpoint call pml_continue,
   pml_replan or pml_abort. An approval is a person's: where their client did not ask them, tell them the
   command in `how`; no tool approves.
4. Answers hold previews. pml_get_task_result gives the whole result of a task, page by page (`next_offset`).
5. Pass the `session_id` of an answer as `session` when you ask about that run.
6. Errors have `code`, `message` and `retryable`. Repeat only what is retryable. NOT_FOUND is also what is
   not yours.

A request that is cancelled stops waiting; the run goes on. Only pml_abort stops a run.
"""
