import assert from "node:assert/strict";
import { type ConformanceCase, fromKubernetes } from "../suite/conformance-case.ts";
import { at, type Json, textAt } from "../suite/json.ts";
import { podObject, sandboxObject, secretObject } from "../suite/objects.ts";
import type { Stage } from "../suite/stage.ts";
import type { WatchEvent } from "../suite/watch-stream.ts";

const source = fromKubernetes;
const asleep = { operatingMode: "Suspended" };

const brief = (events: readonly WatchEvent[]): Json =>
  events.map(({ type, object }) => ({
    type,
    name: at(object, "metadata", "name") ?? null,
    labels: at(object, "metadata", "labels") ?? null,
  }));

/** The version of a list now: a watch from it sees what comes after. */
async function versionNow(stage: Stage, plural = "secrets"): Promise<string> {
  const list = await stage.do("GET", stage.path(plural), { query: { limit: "1" } });
  return textAt(list, "metadata", "resourceVersion");
}

/** A bookmark of a watch that ends soon. A busy server may come too late with it, so a few watches are tried. */
async function bookmarkOf(stage: Stage, plural: string): Promise<Json> {
  for (let tries = 0; tries < 5; tries++) {
    const watch = await stage.watch(stage.path(plural), {
      resourceVersion: await versionNow(stage, plural),
      timeoutSeconds: "5",
      allowWatchBookmarks: "true",
      labelSelector: "none=such",
    });
    const events = await watch.rest();
    assert.ok(events.every(({ type }) => type === "BOOKMARK"));
    const last = events.at(-1);
    if (last !== undefined) return last.object;
  }
  throw new Error("no watch was given a bookmark");
}

/** Watches: where they begin, what they tell, how they end. */
export const watches: readonly ConformanceCase[] = [
  {
    id: "watches/from-version",
    title: "a watch from a version tells every later change once, in order, with the object as it then was",
    source,
    run: async (stage) => {
      const resourceVersion = await versionNow(stage);
      const name = stage.name("secret");
      const labels = { group: name };
      await stage.create("secrets", secretObject(name, { labels }));
      await stage.merge("secrets", name, { metadata: { labels: { step: "1" } } });
      await stage.merge("secrets", name, { metadata: { labels: { step: "2" } } });
      await stage.do("DELETE", stage.path("secrets", name));
      const watch = await stage.watch(stage.path("secrets"), { resourceVersion, labelSelector: `group=${name}` });
      assert.equal(watch.code, 200);
      const events = await watch.take(4);
      stage.note("stream", { type: watch.contentType });
      stage.note(
        "events",
        events.map(({ type, object }) => ({ type, object })),
      );
      assert.deepEqual(
        events.map(({ type }) => type),
        ["ADDED", "MODIFIED", "MODIFIED", "DELETED"],
      );
    },
  },
  {
    id: "watches/deleted-version",
    title: "a DELETED event carries the version of the deletion, later than the object's last",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const made = await stage.create("secrets", secretObject(name));
      const last = textAt(made, "metadata", "resourceVersion");
      const watch = await stage.watch(stage.path("secrets"), {
        resourceVersion: last,
        fieldSelector: `metadata.name=${name}`,
      });
      await stage.do("DELETE", stage.path("secrets", name));
      const [event] = await watch.take(1);
      assert.equal(event?.type, "DELETED");
      assert.ok(BigInt(textAt(event.object, "metadata", "resourceVersion")) > BigInt(last));
    },
  },
  {
    id: "watches/without-version",
    title: "a watch without a version, or from 0, begins with what is there as ADDED",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      for (const query of [{}, { resourceVersion: "0" }]) {
        const watch = await stage.watch(stage.path("secrets"), { ...query, fieldSelector: `metadata.name=${name}` });
        const [event] = await watch.take(1);
        assert.equal(event?.type, "ADDED");
        watch.close();
      }
    },
  },
  {
    id: "watches/custom-resource",
    title: "a Sandbox's watch tells spec and status writes as MODIFIED, with kind and apiVersion",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      const resourceVersion = await versionNow(stage, "sandboxes");
      const watch = await stage.watch(stage.path("sandboxes"), {
        resourceVersion,
        fieldSelector: `metadata.name=${name}`,
      });
      await stage.create("sandboxes", sandboxObject(name, asleep));
      await stage.merge("sandboxes", name, { status: { selector: "conformance=1" } }, "status");
      const events = await watch.upTo(({ object }) => at(object, "status", "selector") === "conformance=1");
      assert.equal(events[0]?.type, "ADDED");
      assert.equal(at(events[0]?.object, "kind"), "Sandbox");
      assert.equal(events.at(-1)?.type, "MODIFIED");
    },
  },
  {
    id: "watches/label-selector",
    title: "with a label selector, entering the selection is ADDED and leaving it is DELETED",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      const resourceVersion = await versionNow(stage);
      const watch = await stage.watch(stage.path("secrets"), { resourceVersion, labelSelector: `in=${name}` });
      const label = (labels: object) => stage.merge("secrets", name, { metadata: { labels } });
      await label({ other: "0" });
      await label({ in: name });
      await label({ other: "1" });
      await label({ in: null });
      await label({ in: name });
      await stage.do("DELETE", stage.path("secrets", name));
      const events = await watch.take(5);
      stage.note("events", brief(events));
      assert.deepEqual(
        events.map(({ type }) => type),
        ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"],
      );
      // The object that left is told as it was while it matched, at the version of the change that took it out.
      const versions = events.map(({ object }) => BigInt(textAt(object, "metadata", "resourceVersion")));
      assert.deepEqual(
        [...versions].sort((a, b) => (a < b ? -1 : 1)),
        versions,
      );
    },
  },
  {
    id: "watches/field-selector",
    title: "with a field selector on the phase, a pod that leaves it is DELETED",
    source,
    run: async (stage) => {
      const name = stage.name("pod");
      await stage.create("pods", podObject(name, {}, { labels: { group: name } }));
      const resourceVersion = await versionNow(stage, "pods");
      const watch = await stage.watch(stage.path("pods"), {
        resourceVersion,
        labelSelector: `group=${name}`,
        fieldSelector: "status.phase=Running",
      });
      for (const phase of ["Running", "Succeeded"]) await stage.merge("pods", name, { status: { phase } }, "status");
      const events = await watch.take(2);
      stage.note(
        "events",
        events.map(({ type, object }) => [type, at(object, "status", "phase") ?? null]),
      );
    },
  },
  {
    id: "watches/single-object",
    title: "watch=true on one object's path answers as a GET: one object is watched by a field selector",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      const { body } = await stage.call("get", "GET", stage.path("secrets", name), { query: { watch: "true" } });
      assert.equal(at(body, "kind"), "Secret");
    },
  },
  {
    id: "watches/timeout",
    title: "timeoutSeconds ends the stream without an error",
    source,
    run: async (stage) => {
      const resourceVersion = await versionNow(stage);
      const watch = await stage.watch(stage.path("secrets"), {
        resourceVersion,
        timeoutSeconds: "1",
        labelSelector: "none=such",
      });
      assert.deepEqual(await watch.rest(), []);
    },
  },
  {
    id: "watches/bookmark-at-end",
    title: "a watch that allows bookmarks is given one before it ends, with a version to resume from",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      const made = await stage.create("secrets", secretObject(name));
      const bookmark = await bookmarkOf(stage, "secrets");
      stage.note("bookmark", bookmark);
      const version = BigInt(textAt(bookmark, "metadata", "resourceVersion"));
      assert.ok(version >= BigInt(textAt(made, "metadata", "resourceVersion")));
      const again = await stage.watch(stage.path("secrets"), {
        resourceVersion: `${version}`,
        fieldSelector: `metadata.name=${name}`,
      });
      await stage.merge("secrets", name, { metadata: { labels: { a: "1" } } });
      const [event] = await again.take(1);
      assert.equal(event?.type, "MODIFIED");
    },
  },
  {
    id: "watches/no-bookmark-unasked",
    title: "a watch that does not allow bookmarks is given none",
    source,
    run: async (stage) => {
      const watch = await stage.watch(stage.path("secrets"), { timeoutSeconds: "3", labelSelector: "none=such" });
      assert.deepEqual(await watch.rest(), []);
    },
  },
  {
    id: "watches/custom-bookmark",
    title: "a bookmark of a custom resource names its kind and holds a version alone",
    source,
    run: async (stage) => stage.note("bookmark", await bookmarkOf(stage, "sandboxes")),
  },
  {
    id: "watches/initial-events",
    title: "sendInitialEvents tells what is there and then a bookmark that says so, or is refused as a whole",
    source,
    run: async (stage) => {
      const name = stage.name("secret");
      await stage.create("secrets", secretObject(name));
      const query = {
        watch: "true",
        sendInitialEvents: "true",
        resourceVersionMatch: "NotOlderThan",
        allowWatchBookmarks: "true",
        fieldSelector: `metadata.name=${name}`,
      };
      const stream = await stage.watch(stage.path("secrets"), query);
      if (stream.code === 422) return; // a client lists instead, as client-go does
      const events = await stream.take(2);
      assert.deepEqual(
        events.map(({ type }) => type),
        ["ADDED", "BOOKMARK"],
      );
      assert.equal(at(events[1]?.object, "metadata", "annotations", "k8s.io/initial-events-end"), "true");
    },
  },
  {
    id: "watches/initial-events-options",
    title: "sendInitialEvents without its companions is 422",
    source,
    run: async (stage) => {
      const query = { watch: "true", sendInitialEvents: "true" };
      const { code } = await stage.call("without match", "GET", stage.path("secrets"), { query });
      assert.equal(code, 422);
      const list = await stage.call("without watch", "GET", stage.path("secrets"), {
        query: { sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" },
      });
      assert.equal(list.code, 422);
      const match = await stage.call("match alone", "GET", stage.path("secrets"), {
        query: { watch: "true", resourceVersionMatch: "NotOlderThan", resourceVersion: "1" },
      });
      assert.equal(match.code, 422);
    },
  },
  {
    id: "watches/expired-in-stream",
    title: "a watch from a version older than the kept history ends with an ERROR event, 410 Expired",
    source,
    needs: ["compaction"],
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep));
      await stage.merge("sandboxes", name, { metadata: { labels: { a: "1" } } });
      await stage.compact();
      const watch = await stage.watch(stage.path("sandboxes"), { resourceVersion: "1", timeoutSeconds: "5" });
      assert.equal(watch.code, 200);
      const events = await watch.rest();
      stage.note(
        "events",
        events.map(({ type, object }) => ({ type, object })),
      );
      assert.equal(events.at(-1)?.type, "ERROR");
      assert.equal(at(events.at(-1)?.object, "code"), 410);
    },
  },
  {
    id: "watches/future-version",
    title: "a watch from a version that is not reached waits or says that it is too large; nothing is invented",
    source,
    run: async (stage) => {
      const watch = await stage.watch(stage.path("secrets"), { resourceVersion: "999999999999", timeoutSeconds: "2" });
      const text = watch.code === 200 ? await watch.rest() : [];
      assert.ok(text.every(({ type }) => type === "ERROR" || type === "BOOKMARK"));
    },
  },
  {
    id: "watches/bad-version",
    title: "a watch from a version that is no number is refused",
    source,
    run: async (stage) => {
      const query = { watch: "true", resourceVersion: "abc" };
      const { code } = await stage.call("watch", "GET", stage.path("secrets"), { query });
      assert.ok(code >= 400);
    },
  },
  {
    id: "watches/table",
    title: "a watch as tables tells one row per event",
    source,
    run: async (stage) => {
      const name = stage.name("sandbox");
      await stage.create("sandboxes", sandboxObject(name, asleep));
      const accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
      const watch = await stage.watch(stage.path("sandboxes"), { fieldSelector: `metadata.name=${name}` }, accept);
      const [event] = await watch.take(1);
      assert.equal(at(event?.object, "kind"), "Table");
      stage.note("event", {
        type: event?.type ?? null,
        name: at(event?.object, "rows", 0, "cells", 0) ?? null,
        columns: at(event?.object, "columnDefinitions", 0, "name") ?? null,
      });
      const partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
      const metadata = await stage.watch(stage.path("sandboxes"), { fieldSelector: `metadata.name=${name}` }, partial);
      const [first] = await metadata.take(1);
      assert.equal(at(first?.object, "kind"), "PartialObjectMetadata");
    },
  },
  {
    id: "watches/no-gap",
    title: "a list and a watch from its version miss and double nothing, under writes",
    source,
    run: async (stage) => {
      const label = stage.name("group");
      const write = async (index: number) => {
        const name = stage.name(`item${index}`);
        await stage.create("secrets", secretObject(name, { labels: { group: label } }));
        if (index % 2 === 0) await stage.do("DELETE", stage.path("secrets", name));
        return name;
      };
      const writing = (async () => {
        const made: string[] = [];
        for (let index = 0; index < 30; index++) made.push(await write(index));
        return made;
      })();
      const list = await stage.do("GET", stage.path("secrets"), { query: { labelSelector: `group=${label}` } });
      const seen = new Map<string, string[]>();
      for (const item of Object(at(list, "items"))) seen.set(textAt(item, "metadata", "name"), ["LISTED"]);
      const watch = await stage.watch(stage.path("secrets"), {
        labelSelector: `group=${label}`,
        resourceVersion: textAt(list, "metadata", "resourceVersion"),
      });
      const made = await writing;
      const last = made.at(-1) ?? "";
      if (!seen.has(last)) {
        for (const { type, object } of await watch.upTo(({ object }) => at(object, "metadata", "name") === last)) {
          const name = textAt(object, "metadata", "name");
          seen.set(name, [...(seen.get(name) ?? []), type]);
        }
      }
      for (const [index, name] of made.entries()) {
        const told = seen.get(name)?.join();
        if (index % 2 === 1) assert.ok(told === "ADDED" || told === "LISTED", `${index}: ${told}`);
        else
          assert.ok(told === undefined || told === "ADDED,DELETED" || told === "LISTED,DELETED", `${index}: ${told}`);
      }
    },
  },
];
