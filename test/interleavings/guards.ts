/** A guard of the product, and how its source reads without it. `find` must stand in the file exactly once. */
export interface Guard {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/**
 * The guards that the check must miss when they are gone. The check is started with one of them taken out of the source as it is loaded;
 * nothing on disk changes.
 */
export const guards: readonly Guard[] = [
  {
    name: "uid",
    file: "packages/kube/src/compose/mode-patch.ts",
    find: "const tests = [test(uidPath, reading.uid)];",
    replace: "const tests: PatchOperation[] = [];",
  },
  {
    name: "stamp and written-by",
    file: "packages/kube/src/compose/mode-patch.ts",
    find: "if (writtenBy !== undefined) tests.push(test(annotationPath(annotations.writtenBy), writtenBy));",
    replace: "",
  },
  {
    name: "epoch test",
    file: "packages/kube/src/compose/mode-patch.ts",
    find: "if (holderEpoch !== undefined) tests.push(test(annotationPath(annotations.holderEpoch), holderEpoch));",
    replace: "",
  },
];
