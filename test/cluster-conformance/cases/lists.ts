import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import { at, isObject, type Json, listAt, textAt } from "../suite/json.ts";
import { podObject, sandboxObject, secretObject, unboundPodObject } from "../suite/objects.ts";
import { everywhere } from "../suite/resource-paths.ts";
import { mergePatch, type Stage } from "../suite/stage.ts";

const source = fromKubernetes;
const asleep = { operatingMode: "Suspended" };

/** Secrets a, b, c … with one label of their own. */
async function labelled(stage: Stage, count: number): Promise<{ label: string; names: string[] }> {
  const label = stage.name("group");
  const names = Array.from({ length: count }, (_, index) => stage.name(`item${index}`));
  for (const [index, name] of names.entries()) {
    await stage.create(
      "secrets",
      secretObject(name, { labels: { group: label, parity: index % 2 === 0 ? "even" : "odd" } }),
    );
  }
  return { label, names };
}

const namesIn = (list: Json): string[] => listAt(list, "items").map((item) => textAt(item, "metadata", "name"));

/** A list without what each item holds. */
function summary(list: Json): Json {
  if (!isObject(list) || at(list, "kind") === "Status") return list;
  return { ...list, items: namesIn(list) };
}

/** Lists: pages, selectors, versions, formats. */
export const lists: readonly ConformanceCase[] = [
  {
    id: "lists/shape",
    title:
      "a list carries kind, version and items; items of a built-in carry no kind of their own, of a custom resource they do",
    source,
    run: async (stage) => {
      const { label } = await labelled(stage, 1);
      const query = { labelSelector: `group=${label}` };
      const { body } = await stage.call("secrets", "GET", stage.path("secrets"), { query });
      assert.equal(at(body, "items", 0, "kind"), undefined);
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep, { labels: { group: label } }));
      const custom = await stage.raw("GET", stage.path("sandboxes"), { query });
      assert.equal(at(custom.body, "items", 0, "kind"), "Sandbox");
      stage.note("custom", summary(custom.body));
      await stage.call("empty", "GET", stage.path("sandboxes"), { query: { labelSelector: "group=none-of-these" } });
    },
  },
  {
    id: "lists/pages",
    title: "limit and continue give every item once, at one version",
    source,
    run: async (stage) => {
      const { label, names } = await labelled(stage, 5);
      const seen: string[] = [];
      const versions = new Set<string>();
      let token = "";
      for (let page = 1; page <= 3; page++) {
        const query = { limit: "2", labelSelector: `group=${label}`, ...(token === "" ? {} : { continue: token }) };
        const { body } = await stage.call(`page ${page}`, "GET", stage.path("secrets"), { query, seen: summary });
        seen.push(...namesIn(body));
        versions.add(textAt(body, "metadata", "resourceVersion"));
        token = page < 3 ? textAt(body, "metadata", "continue") : "";
        if (page === 3) assert.equal(at(body, "metadata", "continue") ?? "", "");
      }
      assert.deepEqual(seen.sort(), names.sort());
      assert.equal(versions.size, 1);
    },
  },
  {
    id: "lists/pages-consistent",
    title: "later pages do not see what was made or deleted after the first",
    source,
    run: async (stage) => {
      const { label, names } = await labelled(stage, 4);
      const labelSelector = `group=${label}`;
      const first = await stage.do("GET", stage.path("secrets"), { query: { limit: "2", labelSelector } });
      await stage.create("secrets", secretObject(stage.name("item9"), { labels: { group: label } }));
      await stage.do("DELETE", stage.path("secrets", names[3] ?? ""));
      const token = textAt(first, "metadata", "continue");
      const rest = await stage.do("GET", stage.path("secrets"), {
        query: { limit: "9", labelSelector, continue: token },
      });
      assert.deepEqual([...namesIn(first), ...namesIn(rest)].sort(), names.sort());
    },
  },
  {
    id: "lists/remaining-count",
    title: "remainingItemCount is told without selectors, and not with them",
    source,
    needs: ["namespaces"],
    run: async (stage) => {
      const namespace = stage.name("space");
      await stage.create("namespaces", { metadata: { name: namespace } });
      const path = stage.path("sandboxes").replace(stage.namespace, namespace);
      for (const label of ["a", "b", "c"]) {
        await stage.do("POST", path, { body: sandboxObject(stage.name(label), asleep, { labels: { x: "1" } }) });
      }
      const all = await stage.call("all", "GET", path, { query: { limit: "1" }, seen: summary });
      assert.equal(at(all.body, "metadata", "remainingItemCount"), 2);
      const query = { limit: "1", labelSelector: "x=1" };
      const selected = await stage.call("selected", "GET", path, { query, seen: summary });
      assert.equal(at(selected.body, "metadata", "remainingItemCount"), undefined);
      const last = await stage.call("last", "GET", path, {
        query: { limit: "5", continue: textAt(all.body, "metadata", "continue") },
        seen: summary,
      });
      assert.equal(namesIn(last.body).length, 2);
    },
  },
  {
    id: "lists/bad-continue",
    title: "a continue token that cannot be read is 400; one with another resourceVersion too",
    source,
    run: async (stage) => {
      const { label } = await labelled(stage, 2);
      const bad = await stage.call("bad", "GET", stage.path("secrets"), {
        query: { limit: "1", continue: "no-token" },
      });
      assert.equal(bad.code, 400);
      const first = await stage.do("GET", stage.path("secrets"), {
        query: { limit: "1", labelSelector: `group=${label}` },
      });
      const token = textAt(first, "metadata", "continue");
      const both = await stage.call("with version", "GET", stage.path("secrets"), {
        query: { limit: "1", continue: token, resourceVersion: textAt(first, "metadata", "resourceVersion") },
        seen: summary,
      });
      assert.equal(both.code, 400);
    },
  },
  {
    id: "lists/expired-continue",
    title: "a continue token older than the kept history is 410 Expired",
    source,
    needs: ["compaction"],
    run: async (stage) => {
      const { label, names } = await labelled(stage, 3);
      const query = { limit: "1", labelSelector: `group=${label}` };
      const first = await stage.do("GET", stage.path("secrets"), { query });
      await stage.merge("secrets", names[0] ?? "", { metadata: { labels: { later: "1" } } });
      await stage.compact();
      // A server keeps snapshots past a compaction, so the token is made older than any.
      const token = {
        ...JSON.parse(Buffer.from(textAt(first, "metadata", "continue"), "base64url").toString()),
        rv: 1,
      };
      const { code, body } = await stage.call("continue", "GET", stage.path("secrets"), {
        query: { ...query, continue: Buffer.from(JSON.stringify(token)).toString("base64url") },
      });
      assert.equal(code, 410);
      assert.equal(at(body, "reason"), "Expired");
    },
  },
  {
    id: "lists/label-selectors",
    title: "label selectors: equality, inequality, sets, presence, absence, several",
    source,
    run: async (stage) => {
      const { label } = await labelled(stage, 4);
      const selectors = [
        "parity=even",
        "parity==odd",
        "parity!=even",
        "parity in (even,odd)",
        "parity notin (even)",
        "parity",
        "!parity",
        "parity=even,parity!=odd",
        "parity in (even), other",
        "absent!=x",
      ];
      for (const selector of selectors) {
        const query = { labelSelector: `group=${label},${selector}` };
        await stage.call(selector, "GET", stage.path("secrets"), { query, seen: summary });
      }
    },
  },
  {
    id: "lists/bad-label-selector",
    title: "a label selector that cannot be read is 400",
    source,
    run: async (stage) => {
      for (const labelSelector of ["a=b=c", "a in", "!!a", "a b", "=x"]) {
        const { code } = await stage.call(labelSelector, "GET", stage.path("secrets"), {
          query: { labelSelector },
          seen: summary,
        });
        assert.equal(code, 400);
      }
    },
  },
  {
    id: "lists/field-selector-name",
    title: "metadata.name selects, for built-in and custom kinds; with a namespace, over all namespaces",
    source,
    run: async (stage) => {
      const { names } = await labelled(stage, 2);
      const query = { fieldSelector: `metadata.name=${names[1]}` };
      const { body } = await stage.call("secret", "GET", stage.path("secrets"), { query, seen: summary });
      assert.deepEqual(namesIn(body), [names[1]]);
      const sandbox = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(sandbox, asleep));
      const custom = await stage.call("sandbox", "GET", stage.path("sandboxes"), {
        query: { fieldSelector: `metadata.name=${sandbox}` },
        seen: summary,
      });
      assert.deepEqual(namesIn(custom.body), [sandbox]);
      const all = await stage.call("everywhere", "GET", everywhere("sandboxes"), {
        query: { fieldSelector: `metadata.name=${sandbox},metadata.namespace=${stage.namespace}` },
        seen: summary,
      });
      assert.deepEqual(namesIn(all.body), [sandbox]);
    },
  },
  {
    id: "lists/field-selector-pods",
    title: "pods are selected by node, phase and restart policy",
    source,
    run: async (stage) => {
      const [bound, unbound] = [stage.name("bound"), stage.name("unbound")];
      await stage.create("pods", podObject(bound, { restartPolicy: "Never" }, { labels: { group: bound } }));
      await stage.create("pods", unboundPodObject(unbound, {}, { labels: { group: bound } }));
      await stage.merge("pods", bound, { status: { phase: "Running" } }, "status");
      const wanted: Record<string, string[]> = {
        "spec.nodeName=conformance-no-such-node": [bound],
        "spec.nodeName=": [unbound],
        "spec.nodeName!=": [bound],
        "status.phase=Running": [bound],
        "status.phase!=Running": [unbound],
        "spec.restartPolicy=Never": [bound],
        "spec.nodeName=,status.phase=Pending": [unbound],
      };
      for (const [fieldSelector, names] of Object.entries(wanted)) {
        const { body } = await stage.call(fieldSelector, "GET", stage.path("pods"), {
          query: { fieldSelector, labelSelector: `group=${bound}` },
          seen: summary,
        });
        assert.deepEqual(namesIn(body), names);
      }
    },
  },
  {
    id: "lists/bad-field-selector",
    title: "a field that cannot be selected is 400",
    source,
    run: async (stage) => {
      const ask = (step: string, plural: string, fieldSelector: string) =>
        stage.call(step, "GET", stage.path(plural), { query: { fieldSelector }, seen: summary });
      assert.equal((await ask("sandbox mode", "sandboxes", "spec.operatingMode=Running")).code, 400);
      assert.equal((await ask("pod", "pods", "spec.invented=1")).code, 400);
      assert.equal((await ask("claim", "persistentvolumeclaims", "status.phase=Bound")).code, 400);
      assert.equal((await ask("unreadable", "secrets", "metadata.name")).code, 400);
    },
  },
  {
    id: "lists/version-zero",
    title: "resourceVersion 0 answers, from whatever version the server has at hand",
    source,
    run: async (stage) => {
      const { label } = await labelled(stage, 2);
      const query = { resourceVersion: "0", labelSelector: `group=${label}` };
      const { code, body } = await stage.raw("GET", stage.path("secrets"), { query });
      assert.equal(code, 200);
      assert.match(textAt(body, "metadata", "resourceVersion"), /^\d+$/);
    },
  },
  {
    id: "lists/not-older-than",
    title: "a list not older than a version contains what that version had",
    source,
    run: async (stage) => {
      const { label, names } = await labelled(stage, 2);
      const last = await stage.get("secrets", names[1] ?? "");
      const resourceVersion = textAt(last, "metadata", "resourceVersion");
      for (const match of [undefined, "NotOlderThan"]) {
        const query = {
          resourceVersion,
          labelSelector: `group=${label}`,
          ...(match === undefined ? {} : { resourceVersionMatch: match }),
        };
        const { body } = await stage.call(`match ${match}`, "GET", stage.path("secrets"), { query, seen: summary });
        assert.deepEqual(namesIn(body), names);
      }
    },
  },
  {
    id: "lists/exact-version",
    title: "an exact version answers what stood then",
    source,
    run: async (stage) => {
      const { label, names } = await labelled(stage, 2);
      const first = await stage.get("secrets", names[0] ?? "");
      const resourceVersion = textAt(first, "metadata", "resourceVersion");
      const query = { resourceVersion, resourceVersionMatch: "Exact", labelSelector: `group=${label}` };
      const { body } = await stage.call("exact", "GET", stage.path("secrets"), { query, seen: summary });
      assert.deepEqual(namesIn(body), [names[0]]);
      assert.equal(textAt(body, "metadata", "resourceVersion"), resourceVersion);
    },
  },
  {
    id: "lists/expired-exact-version",
    title: "an exact version older than the kept history is 410 Expired",
    source,
    needs: ["compaction"],
    run: async (stage) => {
      await labelled(stage, 2);
      await stage.compact();
      const { code } = await stage.call("exact", "GET", stage.path("secrets"), {
        query: { resourceVersion: "1", resourceVersionMatch: "Exact" },
      });
      assert.equal(code, 410);
    },
  },
  {
    id: "lists/future-version",
    title: "a version that is not reached is a timeout that may be retried",
    source,
    run: async (stage) => {
      const query = { resourceVersion: "999999999999" };
      const { code } = await stage.call("list", "GET", stage.path("secrets"), { query });
      assert.equal(code, 504);
    },
  },
  {
    id: "lists/bad-options",
    title: "options that cannot be read or do not fit together are refused",
    source,
    run: async (stage) => {
      const ask = (step: string, query: Record<string, string>) =>
        stage.call(step, "GET", stage.path("secrets"), { query, seen: summary });
      assert.equal((await ask("version", { resourceVersion: "abc" })).code, 400);
      assert.equal((await ask("match alone", { resourceVersionMatch: "Exact" })).code, 422);
      assert.equal((await ask("match of zero", { resourceVersionMatch: "Exact", resourceVersion: "0" })).code, 422);
      assert.equal((await ask("unknown match", { resourceVersionMatch: "Near", resourceVersion: "5" })).code, 422);
      await ask("limit", { limit: "many" });
      await ask("negative limit", { limit: "-1", labelSelector: "none=such" });
    },
  },
  {
    id: "lists/everywhere",
    title: "a list over all namespaces holds this one's objects",
    source,
    run: async (stage) => {
      const { label, names } = await labelled(stage, 2);
      const query = { labelSelector: `group=${label}` };
      const { body } = await stage.call("list", "GET", everywhere("secrets"), { query, seen: summary });
      assert.deepEqual(namesIn(body), names);
    },
  },
  {
    id: "lists/table",
    title: "a Sandbox as a table: the definition's columns, with the object's metadata in each row",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep, { labels: { group: name } }));
      const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
      const columns = (body: Json): Json => ({
        kind: at(body, "kind") ?? null,
        apiVersion: at(body, "apiVersion") ?? null,
        columns: listAt(body, "columnDefinitions").map((column) => [
          at(column, "name") ?? "",
          at(column, "type") ?? "",
          at(column, "format") ?? "",
          at(column, "priority") ?? 0,
        ]),
        rows: listAt(body, "rows").map((row) => ({
          cells: listAt(row, "cells").length,
          name: at(row, "cells", 0) ?? null,
          kind: at(row, "object", "kind") ?? null,
          apiVersion: at(row, "object", "apiVersion") ?? null,
          spec: at(row, "object", "spec") !== undefined,
        })),
      });
      const query = { labelSelector: `group=${name}` };
      await stage.call("list", "GET", stage.path("sandboxes"), { accept, query, seen: columns });
      await stage.call("one", "GET", stage.path("sandboxes", name), { accept, seen: columns });
      for (const includeObject of ["None", "Object", "Metadata"]) {
        await stage.call(includeObject, "GET", stage.path("sandboxes"), {
          accept,
          query: { ...query, includeObject },
          seen: columns,
        });
      }
    },
  },
  {
    id: "lists/partial-metadata",
    title: "objects and lists as PartialObjectMetadata hold metadata alone",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", { ...secretObject(name, { labels: { group: name } }), stringData: { a: "b" } });
      const one = await stage.call("one", "GET", stage.path("secrets", name), {
        accept: "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
      });
      assert.equal(at(one.body, "kind"), "PartialObjectMetadata");
      assert.equal(at(one.body, "data"), undefined);
      const list = await stage.call("list", "GET", stage.path("secrets"), {
        accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        query: { labelSelector: `group=${name}` },
      });
      assert.equal(at(list.body, "kind"), "PartialObjectMetadataList");
    },
  },
  {
    id: "lists/get-version",
    title: "a GET takes a resourceVersion as the oldest acceptable one",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const made = await stage.create("secrets", secretObject(name));
      const path = stage.path("secrets", name);
      const query = { resourceVersion: textAt(made, "metadata", "resourceVersion") };
      assert.equal((await stage.call("reached", "GET", path, { query })).code, 200);
      assert.equal((await stage.call("zero", "GET", path, { query: { resourceVersion: "0" } })).code, 200);
    },
  },
  {
    id: "lists/read-own-write",
    title: "a GET and a list without a version see every write that was answered",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name, { labels: { group: name } }));
      for (let round = 0; round < 10; round++) {
        await stage.do("PATCH", stage.path("secrets", name), {
          type: mergePatch,
          body: { metadata: { annotations: { round: `${round}` } } },
        });
        assert.equal(at(await stage.get("secrets", name), "metadata", "annotations", "round"), `${round}`);
        const list = await stage.do("GET", stage.path("secrets"), { query: { labelSelector: `group=${name}` } });
        assert.equal(at(list, "items", 0, "metadata", "annotations", "round"), `${round}`);
      }
    },
  },
  {
    id: "lists/order",
    title: "items come ordered by name, whatever order they were made in",
    source,
    run: async (stage) => {
      const label = stage.name("group");
      const names = ["c", "a", "b10", "b2", "b-1", "b.1"].map((item) => stage.name(item));
      for (const name of names) await stage.create("secrets", secretObject(name, { labels: { group: label } }));
      const query = { labelSelector: `group=${label}` };
      const whole = namesIn(await stage.do("GET", stage.path("secrets"), { query }));
      stage.note("order", whole);
      const paged: string[] = [];
      for (let token = ""; ; ) {
        const page = { ...query, limit: "2", ...(token === "" ? {} : { continue: token }) };
        const list = await stage.do("GET", stage.path("secrets"), { query: page });
        paged.push(...namesIn(list));
        const next = at(list, "metadata", "continue");
        if (typeof next !== "string" || next === "") break;
        token = next;
      }
      assert.deepEqual(paged, whole);
      assert.deepEqual([...whole].sort(), whole);
    },
  },
];
