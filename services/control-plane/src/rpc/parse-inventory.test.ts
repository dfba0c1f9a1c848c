import { create } from "@bufbuild/protobuf";
import {
  DeleteWorkspaceRequestSchema,
  InventoryServiceSuspendWorkspaceRequestSchema,
  ListWorkspacesRequestSchema,
  OperatingMode,
  WatchWorkspacesRequestSchema,
} from "@holdfast/api/holdfast/v1/inventory_pb";
import { describe, expect, it } from "vitest";
import type { Caller } from "./parse-fencing.ts";
import {
  parseDelete,
  parseListFilter,
  parseSuspendObject,
  parseWatchFilter,
  refuseGuestWishes,
} from "./parse-inventory.ts";

const caller: Caller = { peer: "10.0.0.7:5", header: () => undefined };

describe("a filter of the inventory", () => {
  it("is none where nothing is said", () => {
    const none = { template: undefined, idPrefix: undefined };
    expect(parseListFilter(create(ListWorkspacesRequestSchema, {}))).toEqual({
      ...none,
      mode: undefined,
      modeChangedBefore: undefined,
    });
    expect(parseWatchFilter(create(WatchWorkspacesRequestSchema, {}))).toEqual(none);
  });

  it("is what is said, a time rounded up so that `before` takes in all that lies before", () => {
    const said = { template: "small", workspaceIdPrefix: "team-" };
    const modeChangedBefore = { seconds: 1n, nanos: 1 };
    expect(
      parseListFilter(
        create(ListWorkspacesRequestSchema, { ...said, mode: OperatingMode.SUSPENDED, modeChangedBefore }),
      ),
    ).toEqual({ template: "small", idPrefix: "team-", mode: "Suspended", modeChangedBefore: 1_001 });
    expect(parseListFilter(create(ListWorkspacesRequestSchema, { mode: OperatingMode.RUNNING })).mode).toBe("Running");
    expect(parseWatchFilter(create(WatchWorkspacesRequestSchema, said))).toEqual({
      template: "small",
      idPrefix: "team-",
    });
  });

  it("of the time 0 is a filter, not none", () => {
    const modeChangedBefore = { seconds: 0n, nanos: 0 };
    expect(parseListFilter(create(ListWorkspacesRequestSchema, { modeChangedBefore })).modeChangedBefore).toBe(0);
  });
});

describe("a stop by object", () => {
  it("100 refuses what asks for a guest by name, whatever it says, and says the way", () => {
    const refusal = (wish: object) => () =>
      refuseGuestWishes(create(InventoryServiceSuspendWorkspaceRequestSchema, wish as never));
    for (const [wish, fields] of [
      [{ quiesce: {} }, ["quiesce"]],
      [{ flush: { enabled: false } }, ["flush"]],
      [{ flush: {}, quiesce: {} }, ["quiesce", "flush"]],
    ] as const) {
      expect(refusal(wish)).toThrow(
        expect.objectContaining({
          reason: "INVALID_REQUEST",
          violations: fields.map((field) => ({ field, description: expect.stringContaining("OpenWorkspace") })),
        }),
      );
    }
    expect(refusal({ epoch: 1n })).not.toThrow();
  });

  it("has 2 min and no epoch where it does not say, and any Sandbox of the name", () => {
    const suspend = create(InventoryServiceSuspendWorkspaceRequestSchema, {});
    expect(parseSuspendObject(suspend, caller)).toEqual({ stopTimeoutMs: 120_000, fencing: { t: "none" } });
    expect(parseDelete(create(DeleteWorkspaceRequestSchema, {}), caller)).toEqual({
      stopTimeoutMs: 120_000,
      fencing: { t: "none" },
      expectedSandboxUid: undefined,
    });
  });

  it("is fenced by a present 0, and says who ignores the fence", () => {
    const stopTimeout = { seconds: 1n, nanos: 0 };
    const suspend = create(InventoryServiceSuspendWorkspaceRequestSchema, { epoch: 0n, stopTimeout });
    expect(parseSuspendObject(suspend, caller)).toEqual({ stopTimeoutMs: 1_000, fencing: { t: "epoch", epoch: 0 } });
    const remove = create(DeleteWorkspaceRequestSchema, { ignoreFence: true, expectedSandboxUid: "u", stopTimeout });
    expect(parseDelete(remove, caller)).toEqual({
      stopTimeoutMs: 1_000,
      fencing: { t: "ignore_fence", by: "10.0.0.7:5" },
      expectedSandboxUid: "u",
    });
  });
});
