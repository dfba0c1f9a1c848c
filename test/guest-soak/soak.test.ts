import { describe, expect, it } from "vitest";
import { Random } from "../guest-fuzz/random.ts";
import { soak } from "./soak.ts";
import { pidsBound, watchedAgent } from "./watched-agent.ts";

describe("B17 B21 B51 a guest agent after many commands, terminals and attaches", () => {
  it("holds no zombie, descriptor, timer or memory beyond its bounds", async () => {
    await using agent = await watchedAgent(pidsBound().options);
    const sizes = { commands: 300, terminals: 60, attaches: 400 };
    for (const { name, wrong } of await soak(agent, sizes, new Random(1))) expect(wrong, name).toEqual([]);
  });
});
