import { AgentService } from "@holdfast/api/holdfast/guest/v1/agent_pb";
import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { describe, expect, it } from "vitest";
import { AnsweredError } from "./link-errors.ts";
import { methodNameOf, Router } from "./router.ts";
import type { AgentStream } from "./stream-agent.ts";

describe("G5a what may not be served under an epoch", () => {
  it("is refused before its handler runs or its request is read, be it a call or a stream", async () => {
    const asked: unknown[] = [];
    const served: string[] = [];
    const router = new Router((method, epoch) => {
      asked.push([method, epoch]);
      throw new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "another");
    })
      .unary(AgentService.method.health, async () => {
        served.push("health");
        return {};
      })
      .stream(ExecutionService.method.followExecution, async () => void served.push("follow"));
    const nonsense = Buffer.from("ffff", "hex");
    const context = { epoch: 5n, signal: new AbortController().signal };
    const stream = { context } as unknown as AgentStream;
    const [health, follow] = [
      methodNameOf(AgentService.method.health),
      methodNameOf(ExecutionService.method.followExecution),
    ];
    const superseded = { reason: "HOLDER_EPOCH_SUPERSEDED" };
    await expect(router.call(health, nonsense, context)).rejects.toMatchObject(superseded);
    await expect(router.open(follow, nonsense, stream)).rejects.toMatchObject(superseded);
    expect(asked).toEqual([
      [health, 5n],
      [follow, 5n],
    ]);
    expect(served).toEqual([]);
  });
});
