import { deprivileged } from "@holdfast/testkit";
import { describe, expect, it } from "vitest";
import { judgePrivileges } from "./privilege.ts";

const with_ = (name: string, value: string): string =>
  deprivileged.replace(new RegExp(`^${name}:.*$`, "m"), `${name}:\t${value}`);
const without = (name: string): string => deprivileged.replace(new RegExp(`^${name}:.*\n?`, "m"), "");

describe("G32 the privilege probe", () => {
  it("accepts a process without any privilege", () => {
    expect(judgePrivileges(deprivileged)).toEqual({ t: "deprivileged" });
  });

  it.each(["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])("names %s when it alone is not empty", (name) => {
    const seen = `${name}=00000000a80425fb`;
    expect(judgePrivileges(with_(name, "00000000a80425fb"))).toEqual({ t: "privileged", seen });
  });

  it("names missing no-new-privileges and root, together with all else", () => {
    expect(judgePrivileges(with_("NoNewPrivs", "0"))).toEqual({ t: "privileged", seen: "NoNewPrivs=0" });
    expect(judgePrivileges(with_("Uid", "1001\t0\t1001\t1001"))).toEqual({
      t: "privileged",
      seen: "Uid=1001/0/1001/1001",
    });
  });

  it.each(["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Uid"])(
    "calls a status without %s unreadable, never fine and never privileged",
    (name) => {
      expect(judgePrivileges(without(name))).toEqual({ t: "unreadable", seen: `no ${name}` });
    },
  );

  it.each([
    ["CapEff", "0x0"],
    ["CapEff", "zero"],
    ["NoNewPrivs", "1.0"],
    ["NoNewPrivs", "2"],
    ["Uid", "1001"],
    ["Uid", "-1 1 1 1"],
  ])("calls %s: %s unreadable", (name, value) => {
    expect(judgePrivileges(with_(name, value)).t).toBe("unreadable");
  });

  it("believes the kernel's line, not one that comes later", () => {
    expect(judgePrivileges(`${with_("CapEff", "1")}\nCapEff:\t0000000000000000`).t).toBe("privileged");
    expect(judgePrivileges("").t).toBe("unreadable");
  });
});
