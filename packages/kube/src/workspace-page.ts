import { workspaceIdOf } from "@holdfast/contract";
import type { ListedSandbox, ListPage } from "@holdfast/workspace";
import type { LogSink } from "./log-sink.ts";
import { at, member, ObjectUnreadable, optionalList, requireObject, textOf } from "./objects/json.ts";
import { readListedSandbox } from "./objects/sandbox.ts";

/** The workspaces of a page of Sandboxes: those with our name and the template label. One that cannot be read is said and left out. */
export function readWorkspacePage(body: unknown, log: LogSink): ListPage {
  const items = optionalList(member(requireObject(body, "SandboxList"), "items"), "items");
  const sandboxes: ListedSandbox[] = [];
  for (const item of items) {
    const name = textOf(at(item, "metadata", "name"));
    if (name === undefined || workspaceIdOf(name) === undefined) continue;
    try {
      const reading = readListedSandbox(item);
      if (reading.template !== undefined) sandboxes.push(reading);
    } catch (error) {
      if (!(error instanceof ObjectUnreadable)) throw error;
      log.warn(`the Sandbox ${name} cannot be read and is left out of the list: ${error.message}`);
    }
  }
  return {
    sandboxes,
    continueToken: textOf(at(body, "metadata", "continue")),
    version: textOf(at(body, "metadata", "resourceVersion")),
  };
}
