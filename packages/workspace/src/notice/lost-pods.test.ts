import { bootIdOf, type HolderEpoch, type PodUid, unreachedLookEveryMs } from "@holdfast/contract";
import {
  executionId,
  FakeExecutions,
  openWish,
  patient,
  type Stage,
  settleTasks,
  stage,
  workspaceId,
} from "@holdfast/testkit";
import { beforeEach, describe, expect, it } from "vitest";
import { type Guest, GuestLost } from "../ports/guest.ts";
import { Workspace } from "../workspace.ts";

const id = workspaceId("demo");
const wish = { executionId: executionId("x"), fromOffset: 3, maxOutputBytes: undefined, expectedBootId: undefined };
const started = { t: "started", executionId: wish.executionId, bootId: bootIdOf("b"), attached: true } as const;

let on: Stage;
let workspace: Workspace;
/** The guests that were dialled, as their clients are told of them. */
let guests: { readonly pod: PodUid; readonly unreached: () => void; retired: boolean }[];
/** Attaches of the bound guest; they hear no more until their guest is retired. */
let following: Promise<unknown>;

beforeEach(async () => {
  on = stage();
  guests = [];
  const shaped = (guest: Guest, retired: PromiseWithResolvers<void>): Guest => {
    const under = guest.under.bind(guest);
    const executions = new FakeExecutions();
    executions.attach = async function* () {
      yield started;
      await retired.promise;
      throw new GuestLost("it will not be reached again");
    };
    return Object.assign(guest, {
      executions,
      under: (epoch?: HolderEpoch) => shaped(under(epoch), retired),
      retire: () => retired.resolve(),
    });
  };
  const dialler: typeof on.deps.guests = {
    guest: (address, unreached = () => undefined) => {
      const retired = Promise.withResolvers<void>();
      const entry = { pod: address.podUid, unreached, retired: false };
      void retired.promise.then(() => {
        entry.retired = true;
      });
      guests.push(entry);
      return shaped(on.guests.guest(address), retired);
    },
  };
  workspace = new Workspace(id, { ...on.deps, guests: dialler });
  await workspace.open(openWish, patient);
  const begun = Promise.withResolvers<void>();
  following = (async () => {
    const events = workspace.executionsUnder(undefined, "AttachExecution").attach(wish, patient);
    for await (const event of events) if (event.t === "started") begun.resolve();
    return "it ended well";
  })().catch((error: unknown) => error);
  await begun.promise;
  await settleTasks();
  on.cluster.plan.requests.length = 0;
});

const bound = () => {
  const [first] = guests;
  if (!first) throw new Error("nobody was dialled");
  return first;
};
const tried = async () => {
  bound().unreached();
  await settleTasks();
};
const gone = () => ({
  reason: "GUEST_GONE",
  status: "UNKNOWN",
  metadata: { execution_id: "x", next_offset: "3", evidence: "pod_gone", previous_pod: bound().pod, workspace_id: id },
});

describe("B18 streams that cannot reach their guest, while the watch says nothing", () => {
  it("end as GUEST_GONE after one look, where the pod is gone", async () => {
    on.cluster.replacePod(id);
    await tried();
    expect(await following).toMatchObject(gone());
    expect(on.cluster.plan.requests).toEqual(["readSandbox", "readPods"]);
    expect(workspace.state.t).toBe("unbound");
    expect(on.clock.pending).toBe(0);
  });

  it("end so where the pod has ended, and stands", async () => {
    const [pod] = on.cluster.pods(id);
    if (!pod) throw new Error("no pod");
    pod.phase = "Failed";
    await tried();
    expect(await following).toMatchObject(gone());
  });

  it("wait on where it stands, or is only on its way out; however many try, it is looked for every 4 s", async () => {
    const looks = () => on.cluster.plan.count("readPods");
    for (let at = 0; at < 100; at += 1) bound().unreached();
    await settleTasks();
    expect(looks()).toBe(1);
    await on.clock.advance(unreachedLookEveryMs - 1);
    await tried();
    expect(looks()).toBe(1);
    await on.clock.advance(1);
    const [pod] = on.cluster.pods(id);
    if (!pod) throw new Error("no pod");
    pod.deleting = true;
    await tried();
    expect([looks(), bound().retired, workspace.state.t]).toEqual([2, false, "unbound"]);
    on.cluster.replacePod(id);
    await on.clock.advance(unreachedLookEveryMs);
    await tried(); // Also of a guest that the workspace holds no more.
    expect(await following).toMatchObject(gone());
  });

  it("wait on where the cluster does not answer, and are told at a later look", async () => {
    on.cluster.replacePod(id);
    on.cluster.plan.fail("readPods", "unavailable");
    await tried();
    expect(bound().retired).toBe(false);
    await on.clock.advance(unreachedLookEveryMs);
    await tried();
    expect(await following).toMatchObject(gone());
  });

  it("are told what outranks it: a suspend by somebody", async () => {
    on.cluster.habits.podsEnd = false;
    on.cluster.foreignMode(id, "Suspended");
    on.cluster.endPods(id);
    await tried();
    expect(await following).toMatchObject({ reason: "WORKSPACE_SUSPENDED" });
  });
});

describe("B18 streams of a pod of which the watch says that it is gone", () => {
  it("end without having tried, also where the workspace had left it because it was on its way out", async () => {
    on.cluster.hear((news) => void workspace.heard(news));
    const [pod] = on.cluster.pods(id);
    if (!pod) throw new Error("no pod");
    pod.deleting = true;
    on.cluster.wake(id);
    await settleTasks();
    expect([bound().retired, workspace.state.t]).toEqual([false, "unbound"]);
    on.cluster.replacePod(id);
    await settleTasks();
    expect(await following).toMatchObject(gone());
  });
});
