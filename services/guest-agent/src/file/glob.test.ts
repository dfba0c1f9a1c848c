import fc from "fast-check";
import picomatch from "picomatch";
import { describe, expect, it } from "vitest";
import { Glob } from "./glob.ts";

/** Matches a path as a walk does: component by component. */
function matches(pattern: string, path: string, hidden = false): boolean {
  const glob = new Glob(pattern, hidden);
  let state = glob.top;
  const names = path.split("/");
  for (const [at, name] of names.entries()) {
    const step = glob.step(state, name);
    if (at === names.length - 1) return step.matched;
    if (step.below === undefined) return false;
    state = step.below;
  }
  return false;
}

describe("a glob", () => {
  it.each([
    ["*.ts", ["a.ts", "b.c.ts"], ["a/b.ts", ".a.ts", "a.js"]],
    ["**/*.ts", ["a.ts", "a/b.ts", "a/b/c.ts"], [".a/b.ts", "a/.b/c.ts", "a.tsx"]],
    ["src/**", ["src/a", "src/a/b"], ["src", "srcs/a"]],
    ["src/**/test/*.ts", ["src/test/a.ts", "src/x/y/test/a.ts"], ["src/a.ts", "src/test/x/a.ts"]],
    ["{a,b/{c,d}}/*.x", ["a/1.x", "b/c/1.x", "b/d/1.x"], ["b/1.x", "c/1.x"]],
    ["[a-c]?[!0-9]", ["axy", "b1z"], ["dxy", "ax1", "ax"]],
    ["[]x]", ["]", "x"], ["[", "y"]],
    ["\\*", ["*"], ["a"]],
    ["a[", ["a["], ["ab"]],
    [".github/**", [".github/w/x.yml"], ["github/x"]],
    ["./a//b", ["a/b"], ["a"]],
    ["дом*", ["домик"], ["том"]],
  ])("%s", (pattern, yes, no) => {
    expect(yes.filter((path) => !matches(pattern, path))).toEqual([]);
    expect(no.filter((path) => matches(pattern, path))).toEqual([]);
  });

  it("matches hidden names only when they are wished or named", () => {
    expect(matches("**", ".a/b")).toBe(false);
    expect(matches("", ".a/b")).toBe(false);
    expect(matches("", ".a/b", true)).toBe(true);
    expect(matches("**/*", ".a/.b", true)).toBe(true);
    expect(matches("*/.b", "a/.b")).toBe(true);
  });

  it("agrees with picomatch wherever that has no other idea of what a pattern is", () => {
    const part = fc.array(fc.constantFrom("a", "b", ".", "*", "?", "[ab]", "{a,b}", "x-1"), {
      minLength: 1,
      maxLength: 4,
    });
    const segment = fc.oneof(
      part.map((parts) => parts.join("")),
      fc.constant("**"),
    );
    const pattern = fc
      .array(segment, { minLength: 1, maxLength: 4 })
      .map((parts) => parts.join("/"))
      .filter((text) => !/(^|\/)\.+(\/|$)|\*\*[^/]|[^/]\*\*|\{[^}]*\}\*|(^|\/)\{a,b\}?\./.test(text));
    const name = fc
      .array(fc.constantFrom("a", "b", "x-1", "."), { minLength: 1, maxLength: 4 })
      .map((parts) => parts.join(""));
    const path = fc
      .array(
        name.filter((text) => !/^\.+$/.test(text)),
        { minLength: 1, maxLength: 4 },
      )
      .map((names) => names.join("/"));
    const options = { noextglob: true, nonegate: true, strictSlashes: true, strictBrackets: false };
    fc.assert(
      fc.property(pattern, path, fc.boolean(), (glob, file, hidden) => {
        const expected = picomatch(glob, { ...options, dot: hidden })(file);
        expect(matches(glob, file, hidden), `${glob} on ${file}, hidden ${hidden}`).toBe(expected);
      }),
      { numRuns: 5_000 },
    );
  });

  it("takes time in proportion, whatever the pattern", () => {
    const name = "a".repeat(255);
    const started = performance.now();
    expect(matches(`${"*a".repeat(200)}b`, name)).toBe(false);
    expect(matches(`${"**/*a/".repeat(100)}b`, Array(200).fill("aa").join("/"))).toBe(false);
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  it("refuses more alternatives than can be matched, and what is no text for a path", () => {
    expect(() => new Glob("{a,b}".repeat(10), false)).toThrow("alternatives");
    expect(() => new Glob("a\0", false)).toThrow("NUL");
    expect(() => new Glob("a".repeat(5_000), false)).toThrow("longer");
  });
});
