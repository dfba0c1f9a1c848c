import { mkdirSync, mkdtempSync, realpathSync, rmdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { choosePipes } from "../spawn/pipes.ts";
import { waitCallsOf } from "../spawn/posix-calls.ts";
import { Reaper } from "../spawn/reaper.ts";
import { ThreadSpawner } from "../spawn/thread-spawner.ts";
import { addon, startThread } from "../testing/addon.testing.ts";
import { launch } from "./launch.ts";
import type { PathLook } from "./path-looks.ts";

/** Starts in a directory that is another when the kernel is given the start, and itself again when the failure is looked into. */
async function swapped(to: (cwd: string) => void): Promise<unknown> {
  const top = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-swap-test-")));
  onTestFinished(() => rmSync(top, { recursive: true, force: true }));
  const cwd = join(top, "here");
  mkdirSync(cwd);
  const koffi = await addon();
  const spawner = new ThreadSpawner(new Reaper(waitCallsOf(koffi)), await startThread());
  const looks: PathLook = {
    at(_path, look) {
      rmSync(cwd, { force: true, recursive: true });
      mkdirSync(cwd);
      return look();
    },
  };
  const needs = { spawner, pipes: choosePipes(join(top, "pipes"), koffi), looks };
  const wish = { command: "true", args: [], takesInput: false };
  const env = { PATH: process.env.PATH ?? "" };
  return launch(wish, cwd, env, needs, () => {
    rmdirSync(cwd);
    to(cwd);
  }).then(
    (launched) => launched.t,
    (error) => error,
  );
}

it("G13 a directory that was away for a moment is no program that is missing", async () => {
  expect(await swapped(() => undefined)).toMatchObject({ reason: "INVALID_REQUEST", metadata: { field: "cwd" } });
});

it("G13 nothing starts outside the workspace by a link that was put in its directory's place meanwhile", async () => {
  expect(await swapped((cwd) => symlinkSync("/", cwd))).toMatchObject({
    reason: "INVALID_REQUEST",
    metadata: { field: "cwd" },
  });
  expect(await swapped((cwd) => symlinkSync("nowhere", cwd))).toMatchObject({ metadata: { field: "cwd" } });
});
