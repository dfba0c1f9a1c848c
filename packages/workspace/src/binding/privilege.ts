/** What a guest's own process status says about its privileges (G32). */
export type PrivilegeVerdict =
  | { readonly t: "deprivileged" }
  /** `seen`: what was found, as `CapEff=00000000a80425fb, Uid=0`. */
  | { readonly t: "privileged"; readonly seen: string }
  | { readonly t: "unreadable"; readonly seen: string };

const capabilitySets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] as const;

/** Judges the text of `/proc/self/status`: every capability set empty, no new privileges, not root. */
export function judgePrivileges(status: string): PrivilegeVerdict {
  const fields = fieldsOf(status);
  const privileged: string[] = [];
  for (const name of capabilitySets) {
    const mask = fields.get(name) ?? "";
    if (!/^[0-9a-f]{1,32}$/i.test(mask)) return unreadable(name, mask);
    if (BigInt(`0x${mask}`) !== 0n) privileged.push(`${name}=${mask}`);
  }
  const noNewPrivileges = fields.get("NoNewPrivs") ?? "";
  if (noNewPrivileges !== "0" && noNewPrivileges !== "1") return unreadable("NoNewPrivs", noNewPrivileges);
  if (noNewPrivileges === "0") privileged.push("NoNewPrivs=0");

  const uids = fields.get("Uid") ?? "";
  if (!/^\d+(\s+\d+){3}$/.test(uids)) return unreadable("Uid", uids);
  if (uids.split(/\s+/).some((uid) => Number(uid) === 0)) privileged.push(`Uid=${uids.replaceAll(/\s+/g, "/")}`);

  return privileged.length === 0 ? { t: "deprivileged" } : { t: "privileged", seen: privileged.join(", ") };
}

/** The first line of each name counts: a later one cannot come from the kernel. */
function fieldsOf(status: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of status.split("\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    if (colon > 0 && !fields.has(name)) fields.set(name, line.slice(colon + 1).trim());
  }
  return fields;
}

function unreadable(name: string, text: string): PrivilegeVerdict {
  return { t: "unreadable", seen: text === "" ? `no ${name}` : `${name}=${text.slice(0, 64)}` };
}
