import { globSync, readFileSync } from "node:fs";
import { dirname, join, sep } from "node:path";
import { describe, expect, it } from "vitest";

const root = dirname(import.meta.dirname);

/** Room → what it may import of ours. Nothing below knows anything above. */
const allowed: Record<string, readonly string[]> = {
  "packages/contract": [],
  "packages/async": [],
  "packages/api": [],
  "packages/errors": ["api", "contract"],
  "packages/workspace": ["async", "contract", "errors"],
  "packages/kube": ["async", "contract", "errors", "workspace"],
  "packages/guest-link": ["api", "async", "contract"],
  "packages/guest-client": ["api", "async", "contract", "errors", "guest-link", "workspace"],
  "packages/embedded-cluster": [],
  "packages/testkit": ["async", "contract", "errors", "guest-link", "workspace"],
  "services/control-plane": [
    "api",
    "async",
    "contract",
    "embedded-cluster",
    "errors",
    "guest-client",
    "kube",
    "workspace",
  ],
  "services/guest-agent": ["api", "async", "contract", "guest-link"],
  "services/cli": ["api", "contract"],
};

/** Import → the only rooms that may use it, and why. */
const confined: readonly { readonly pattern: RegExp; readonly rooms: readonly string[]; readonly why: string }[] = [
  {
    pattern: /^@kubernetes\/client-node/,
    rooms: ["packages/kube"],
    why: "one room speaks to the cluster, so that the domain runs without one",
  },
  {
    pattern: /^@grpc\/|^grpc-health-check$|^@connectrpc\//,
    rooms: ["services/control-plane", "services/cli"],
    why: "handlers are protocol-neutral; only listeners and clients know a protocol",
  },
  {
    pattern: /^node:sqlite$/,
    rooms: ["packages/embedded-cluster"],
    why: "the service keeps no state of its own: the truth is on the cluster and in the guests",
  },
  {
    pattern: /^node:(net|tls|http|https|http2|dgram)$/,
    rooms: [
      "packages/kube",
      "packages/guest-link",
      "packages/embedded-cluster",
      "services/control-plane",
      "services/guest-agent",
      "services/cli",
    ],
    why: "sockets belong to the rooms at the edge",
  },
  {
    pattern: /^node:child_process$/,
    rooms: ["packages/embedded-cluster", "services/guest-agent", "services/cli"],
    why: "only the node and the guest agent start programs; the command-line client has its own terminal set by stty",
  },
];

/** Development-only imports that tests may add to their room's own. */
const testsMayAlsoImport = ["testkit"];

interface SourceFile {
  readonly path: string;
  readonly room: string;
  readonly isTest: boolean;
  readonly imports: readonly string[];
}

const sources: readonly SourceFile[] = globSync("{packages,services}/*/**/*.{ts,mjs}", { cwd: root })
  .filter(
    (path) => !path.includes("node_modules") && !path.includes(`${sep}dist${sep}`) && !path.includes(`${sep}gen${sep}`),
  )
  .map((path) => ({
    path,
    room: path.split(sep).slice(0, 2).join("/"),
    isTest: /\.test\.ts$|\.testing\.ts$|\.fixture\.m?ts$/.test(path),
    imports: importsOf(readFileSync(join(root, path), "utf8")),
  }));

function importsOf(text: string): string[] {
  const found = text.matchAll(
    /(?:^|\n)\s*(?:import|export)\b[^"'`;]*?from\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']|(?:^|\n)import\s*["']([^"']+)["']/g,
  );
  return [...found].map((match) => match[1] ?? match[2] ?? match[3] ?? "");
}

describe("the house", () => {
  it("has a rule for every room", () => {
    expect([...new Set(sources.map((file) => file.room))].filter((room) => !(room in allowed))).toEqual([]);
    expect(sources.length).toBeGreaterThan(50);
  });

  it("lets a room import only what stands below it", () => {
    const offences = sources.flatMap((file) =>
      file.imports
        .filter((specifier) => specifier.startsWith("@holdfast/"))
        .map((specifier) => specifier.split("/")[1] ?? "")
        .filter((room) => `packages/${room}` !== file.room && `services/${room}` !== file.room)
        .filter((room) => !(allowed[file.room] ?? []).includes(room))
        .filter((room) => !(file.isTest && testsMayAlsoImport.includes(room)))
        .map((room) => `${file.path} imports @holdfast/${room}`),
    );
    expect(offences).toEqual([]);
  });

  it("lets nobody reach into another room's files", () => {
    const offences = sources.flatMap((file) =>
      file.imports
        .filter((specifier) => /^@holdfast\/(?!api\/)[^/]+\/./.test(specifier) || leavesRoom(file, specifier))
        .map((specifier) => `${file.path} imports ${specifier}`),
    );
    expect(offences).toEqual([]);
  });

  it.each(confined)("confines $pattern: $why", ({ pattern, rooms }) => {
    const offences = sources
      .filter((file) => !file.isTest && file.room !== "packages/testkit" && !rooms.includes(file.room))
      .filter((file) => file.imports.some((specifier) => pattern.test(specifier)))
      .map((file) => file.path);
    expect(offences).toEqual([]);
  });

  it("keeps the domain from the machine: no Node module, no clock of its own", () => {
    const domain = sources.filter((file) => file.room === "packages/workspace" && !file.isTest);
    expect(domain.length).toBeGreaterThan(5);
    const offences = domain.filter((file) => {
      const text = readFileSync(join(root, file.path), "utf8");
      return (
        file.imports.some((specifier) => specifier.startsWith("node:")) ||
        /Date\.now\(|performance\.now\(|setTimeout\(|setInterval\(/.test(text)
      );
    });
    expect(offences.map((file) => file.path)).toEqual([]);
  });

  it("switches no check off (the linter keeps `any` out)", () => {
    const offences = sources.filter((file) =>
      /@ts-ignore|@ts-expect-error|@ts-nocheck|biome-ignore-all|\b(?:it|describe|test)\.only\(/.test(
        readFileSync(join(root, file.path), "utf8"),
      ),
    );
    expect(offences.map((file) => file.path)).toEqual([]);
  });

  it("names nothing but public registries' packages in the lockfile", () => {
    expect(readFileSync(join(root, "pnpm-lock.yaml"), "utf8")).not.toMatch(/https?:\/\//);
  });
});

function leavesRoom(file: SourceFile, specifier: string): boolean {
  if (!specifier.startsWith(".")) return false;
  const target = join(dirname(file.path), specifier);
  return !target.startsWith(`${file.room}${sep}`);
}
