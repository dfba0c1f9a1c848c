declare module "json-merge-patch" {
  const mergePatch: { apply(target: unknown, patch: unknown): unknown };
  export default mergePatch;
}
