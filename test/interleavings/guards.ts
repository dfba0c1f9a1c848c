/** A guard of the product, and how its source reads without it. `find` must stand in the file exactly once. */
export interface Guard {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

const patch = "packages/kube/src/compose/mode-patch.ts";
const cleanUp = "packages/workspace/src/verbs/start-attempt.ts";

/**
 * The guards that the check must miss when they are gone. The check is started with one of them taken out of the source as it is loaded;
 * nothing on disk changes.
 */
export const guards: readonly Guard[] = [
  {
    name: "uid",
    file: patch,
    find: "const tests = [test(uidPath, reading.uid)];",
    replace: "const tests: PatchOperation[] = [];",
  },
  {
    name: "stamp",
    file: patch,
    find: "if (modeChangedAt !== undefined) tests.push(test(annotationPath(annotations.modeChangedAt), modeChangedAt));",
    replace: "",
  },
  {
    name: "written-by",
    file: patch,
    find: "if (writtenBy !== undefined) tests.push(test(annotationPath(annotations.writtenBy), writtenBy));",
    replace: "",
  },
  {
    name: "epoch test",
    file: patch,
    find: "if (holderEpoch !== undefined) tests.push(test(annotationPath(annotations.holderEpoch), holderEpoch));",
    replace: "",
  },
  {
    name: "gate",
    file: "packages/workspace/src/fence/holder-epoch.ts",
    find: "if (stored > epoch) throw epochSuperseded(reading.name, epoch, stored);",
    replace: "",
  },
  {
    name: "order of L17",
    file: "packages/workspace/src/binding/fence-guest.ts",
    find: "  return sandbox;\n}",
    replace: "  return before;\n}",
  },
  {
    name: "re-read of L25",
    file: "packages/workspace/src/verbs/confirm-stopped.ts",
    find: "const last = await readStillSuspended(ws, within);",
    replace: "const last = sandbox;",
  },
  {
    name: "L19, its own mark",
    file: cleanUp,
    find: 'if (!attempt.marks.includes(sandbox.stamps.writtenBy ?? "")) return "left_running";',
    replace: "",
  },
  {
    name: "L19, nobody can use it",
    file: cleanUp,
    find: 'if (bindableOf(pods, ws.left) && !isProvenPrivileged(error)) return "left_running";',
    replace: "",
  },
];
