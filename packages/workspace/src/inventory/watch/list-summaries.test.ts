import { Deadline, systemClock } from "@holdfast/async";
import { watchListPageSize } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { type Stage, stage, workspaceId } from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { listSummaries } from "./list-summaries.ts";

let on: Stage;
beforeEach(() => {
  on = stage();
});

const within = () => new Deadline(systemClock, 10_000);

/** The next lists' second pages have expired. */
function expiringTwice(times: number) {
  let left = times;
  return {
    async listSandboxes(page: { limit: number; continueToken: string | undefined }, limit: Deadline) {
      if (page.continueToken !== undefined && left > 0) {
        left -= 1;
        throw new HoldfastError("PAGE_TOKEN_EXPIRED", { message: "expired" });
      }
      return await on.cluster.listSandboxes({ ...page, limit: 2 }, limit);
    },
  };
}

describe("the list that a watch begins with", () => {
  it("reads every page and keeps the version of the first", async () => {
    for (let index = 0; index < watchListPageSize + 1; index += 1) on.cluster.seed(workspaceId(`w-${index}`));
    const { version } = on.cluster.watches;
    using limit = within();
    const listed = await listSummaries(on.cluster, limit);
    expect([listed.workspaces.size, listed.version]).toEqual([watchListPageSize + 1, version]);
    expect(on.cluster.plan.requests).toEqual(["listSandboxes", "listSandboxes"]);
  });

  it("begins again when its own pages expire, and gives up where they always do", async () => {
    for (const id of ["a", "b", "c"]) on.cluster.seed(workspaceId(id));
    using limit = within();
    expect((await listSummaries(expiringTwice(2), limit)).workspaces.size).toBe(3);
    await expect(listSummaries(expiringTwice(3), limit)).rejects.toMatchObject({ reason: "CLUSTER_UNAVAILABLE" });
  });

  it("is STREAM_CAPACITY for a namespace that is too large to be held", async () => {
    for (const id of ["a", "b", "c"]) on.cluster.seed(workspaceId(id));
    using limit = within();
    await expect(listSummaries(on.cluster, limit, 2)).rejects.toMatchObject({
      reason: "STREAM_CAPACITY",
      metadata: { limit: "2" },
    });
    expect((await listSummaries(on.cluster, limit, 3)).workspaces.size).toBe(3);
  });
});
