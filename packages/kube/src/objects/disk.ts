import { agentEnv } from "@holdfast/contract";
import type { DiskVerdict } from "@holdfast/workspace";
import { at, elements, type JsonObject, textOf } from "./json.ts";

/** How a workspace's disk reaches its pod: as a raw device that the guest mounts, or mounted by the node. */
export type DiskKind = "block" | "filesystem";

/** Where a guest mounts its disk when the template does not say. */
const rootDefault = "/workspace";

/**
 * L10: every claim is named and is used by a container: Block as a device and mounted nowhere. `filesystem` accepts mounted
 * Filesystem claims too. Never throws: what is not of the expected shape cannot be a disk.
 */
export function diskVerdict(podTemplate: unknown, claimTemplates: unknown, kind: DiskKind): DiskVerdict {
  const claims = elements(claimTemplates);
  if (claims.length === 0) return unusable("there is no volumeClaimTemplates entry", []);
  const names = claims.map((claim) => textOf(at(claim, "metadata", "name")));
  if (names.includes(undefined)) return unusable("a volumeClaimTemplates entry has no name", named(names));
  const entries = named(names);
  const twice = entries.filter((name, index) => entries.indexOf(name) !== index);
  if (twice.length > 0) return unusable("two volumeClaimTemplates entries have the same name", twice);

  let root: string | undefined;
  const faults: { readonly name: string; readonly why: string }[] = [];
  for (const [index, name] of entries.entries()) {
    const found = usageOf(name, at(claims[index], "spec", "volumeMode"), podTemplate, kind);
    if (found.t === "fault") faults.push({ name, why: found.why });
    else root ??= found.root;
  }
  if (faults.length > 0 || root === undefined) {
    return unusable(
      faults.map(({ name, why }) => `${name}: ${why}`).join("; "),
      faults.map(({ name }) => name),
    );
  }
  return { usable: true, root, entries };
}

/** The names of claim templates, of those that have one. */
export function claimTemplateNames(claimTemplates: unknown): readonly string[] {
  return named(elements(claimTemplates).map((claim) => textOf(at(claim, "metadata", "name"))));
}

type Usage = { readonly t: "used"; readonly root: string } | { readonly t: "fault"; readonly why: string };

function usageOf(name: string, volumeMode: unknown, podTemplate: unknown, kind: DiskKind): Usage {
  const containers = elements(at(podTemplate, "spec", "containers"));
  const everyone = [...containers, ...elements(at(podTemplate, "spec", "initContainers"))];
  const mounting = everyone.find((container) => entryNamed(container, "volumeMounts", name));
  if (volumeMode === "Block") {
    if (mounting) return { t: "fault", why: "a Block disk cannot be in volumeMounts" };
    const holder = containers.find((container) => entryNamed(container, "volumeDevices", name));
    if (!holder) return { t: "fault", why: "no container has it in volumeDevices" };
    return { t: "used", root: rootEnvOf(holder) ?? rootDefault };
  }
  const isFilesystem = volumeMode === undefined || volumeMode === "Filesystem";
  if (kind === "block" || !isFilesystem) {
    const mode = textOf(volumeMode) ?? "Filesystem";
    return {
      t: "fault",
      why: `its volumeMode is ${mode}, not Block (a Filesystem disk is shared by virtio-fs and can lose writes)`,
    };
  }
  for (const container of containers) {
    const path = textOf(at(entryNamed(container, "volumeMounts", name), "mountPath"));
    if (path !== undefined) return { t: "used", root: path };
  }
  return { t: "fault", why: "no container has it in volumeMounts" };
}

function entryNamed(container: unknown, list: "volumeMounts" | "volumeDevices", name: string): JsonObject | undefined {
  return elements(at(container, list)).find((entry): entry is JsonObject => at(entry, "name") === name);
}

function rootEnvOf(container: unknown): string | undefined {
  const entry = elements(at(container, "env")).find((variable) => at(variable, "name") === agentEnv.workspaceRoot);
  return textOf(at(entry, "value"));
}

function named(names: readonly (string | undefined)[]): readonly string[] {
  return names.filter((name) => name !== undefined);
}

function unusable(why: string, claims: readonly string[]): DiskVerdict {
  return { usable: false, why, claims };
}
