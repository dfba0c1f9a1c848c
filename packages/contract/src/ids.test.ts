import { describe, expect, it } from "vitest";
import {
  executionIdPattern,
  isExecutionId,
  isWorkspaceId,
  sandboxNameOf,
  workspaceIdMaxLength,
  workspaceIdOf,
} from "./ids.ts";

describe("a workspace id", () => {
  it.each(["a", "7", "a-b", "0-0", "a--b", "a".repeat(54)])("may be %s", (text) => {
    expect(isWorkspaceId(text)).toBe(true);
  });

  it.each(["", "A", "a b", "-a", "a-", "-", "a_b", "a.b", "ä", "a\n", "\na", "a/b", "..", "a".repeat(55)])(
    "may not be %j: it is refused, never made to fit",
    (text) => {
      expect(isWorkspaceId(text)).toBe(false);
    },
  );

  it("is at most 54 characters, so that Sandbox, Pod and Service names fit in 63", () => {
    expect(workspaceIdMaxLength).toBe(54);
    const longest = "a".repeat(54);
    if (!isWorkspaceId(longest)) throw new Error("the longest id is one");
    expect(sandboxNameOf(longest)).toHaveLength(63);
  });

  it("names its Sandbox, and is read back from the name", () => {
    const id = "team-1";
    if (!isWorkspaceId(id)) throw new Error("it is one");
    expect(sandboxNameOf(id)).toBe("namzu-ws-team-1");
    expect(workspaceIdOf("namzu-ws-team-1")).toBe("team-1");
  });

  it.each(["team-1", "namzu-ws-", "namzu-ws--a", "namzu-ws-A", `namzu-ws-${"a".repeat(55)}`, "my-namzu-ws-a"])(
    "is not read from %s",
    (name) => {
      expect(workspaceIdOf(name)).toBeUndefined();
    },
  );
});

describe("an execution id", () => {
  it("is 1 to 64 of letters, digits, '.', '_' and '-'", () => {
    expect(executionIdPattern.source).toBe("^[A-Za-z0-9._-]{1,64}$");
    for (const text of ["a", "A.b_c-9", "-", "x".repeat(64)]) expect(isExecutionId(text)).toBe(true);
    for (const text of ["", "x".repeat(65), "a b", "a/b", "a\n", "é"]) expect(isExecutionId(text)).toBe(false);
  });
});
