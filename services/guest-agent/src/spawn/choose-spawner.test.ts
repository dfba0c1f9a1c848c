import { expect, it, vi } from "vitest";
import { chooseSpawners } from "./choose-spawner.ts";

vi.mock("../libc/koffi.ts", async (importOriginal) => ({
  ...(await importOriginal<typeof import("../libc/koffi.ts")>()),
  loadKoffi: () => undefined,
}));

const start = { command: "true", args: [], cwd: "/", env: { PATH: process.env.PATH ?? "" } } as const;
const stdio = [undefined, undefined, undefined] as const;

it("G26 nothing that people start begins once the agent stops, also where there is no addon; what the agent starts for itself does", async () => {
  const { programs, helpers, retire, givesTerminals } = chooseSpawners();
  expect(givesTerminals).toBe(false);
  expect(await (await programs.spawn({ ...start, stdio })).exited).toEqual({ code: 0 });
  retire();
  await expect(programs.spawn({ ...start, stdio })).rejects.toMatchObject({ reason: "AGENT_RETIRING" });
  expect(await (await helpers.spawn({ ...start, stdio })).exited).toEqual({ code: 0 });
});
