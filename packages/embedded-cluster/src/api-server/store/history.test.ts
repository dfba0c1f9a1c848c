import { expect, it, onTestFinished } from "vitest";
import { findType } from "../resource-types.ts";
import { openTestServer, secretObject, withDefaultNamespace } from "../testing/test-server.ts";

it("keeps as much history after thousands of changes as after the first, whatever characters they hold", async () => {
  const test = await withDefaultNamespace(await openTestServer({ history: { changes: 10_000, bytes: 100_000 } }));
  onTestFinished(() => test.close());
  const type = findType({ group: "", version: "v1", plural: "secrets" });
  if (type === undefined) throw new Error("secrets are not served");
  const { registry } = test.server;
  registry.create(type, "default", secretObject("s"));
  for (let at = 0; at < 1_000; at += 1) {
    const annotations = { faces: "😀".repeat(300) + at };
    registry.patch({ type, namespace: "default", name: "s" }, "application/merge-patch+json", {
      metadata: { annotations },
    });
  }
  // Each change is some 3 KiB with the object before it: the last twenty are well within 100 kB.
  const cursor = registry.watch(type, undefined, { t: "after", rv: registry.revision - 20 });
  onTestFinished(() => cursor.close());
  expect(cursor.read(100)).toHaveLength(20);
});
