import { at, type Json, listAt, pick, textAt } from "./json.ts";
import { claimSpec, kubeletOf, type PodMetadata, podTemplate, sandboxObject } from "./objects.ts";
import type { Stage } from "./stage.ts";

export const nameHashLabel = "agents.x-k8s.io/sandbox-name-hash";
export const podNameAnnotation = "agents.x-k8s.io/pod-name";
export const adoptableLabel = "agents.x-k8s.io/adoptable";

/** FNV-1a of a Sandbox's name, as the controller labels its children. */
export function nameHash(name: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(name)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, "0");
}

export interface PlayWish {
  readonly spec?: object;
  readonly metadata?: object;
  readonly podSpec?: object;
  readonly podMetadata?: PodMetadata;
  /** With the claim `workspace`: of a class that is nobody's, or `provided`, of the cluster's own. */
  readonly claim?: boolean | "provided";
  readonly label?: string;
}

/** One Sandbox whose pods run by the case's word. */
export interface SandboxPlay {
  readonly name: string;
  readonly claimName: string;
  readonly kubelet: ReturnType<typeof kubeletOf>;
  create(): Promise<Json>;
  sandbox(): Promise<Json | undefined>;
  pod(): Promise<Json | undefined>;
  setMode(mode: "Running" | "Suspended"): Promise<Json>;
  patch(body: object): Promise<Json>;
  /** Waits for a condition's reason at the current generation, and for more where wanted. */
  untilReason(type: string, reason: string, alsoSo?: (sandbox: Json) => boolean): Promise<Json>;
  untilPod(isSo: (pod: Json) => boolean, what: string): Promise<Json>;
  /** Creates it and plays its pod to ready. */
  open(): Promise<Json>;
  /** Records the status as it is now. */
  noteStatus(step: string): Promise<void>;
}

export function playSandbox(stage: Stage, wish: PlayWish = {}): SandboxPlay {
  const name = stage.name(wish.label ?? "sandbox");
  stage.hide(nameHash(name), `<hash of ${wish.label ?? "sandbox"}>`);
  const spec = { ...claimSpec(), ...(wish.claim === "provided" ? { storageClassName: undefined } : {}) };
  const claims = [{ metadata: { name: "workspace" }, spec }];
  const body = sandboxObject(
    name,
    {
      podTemplate: podTemplate(wish.podSpec, wish.podMetadata),
      ...(wish.claim !== undefined && wish.claim !== false ? { volumeClaimTemplates: claims } : {}),
      ...wish.spec,
    },
    wish.metadata,
  );
  const kubelet = kubeletOf(stage, name);
  const play: SandboxPlay = {
    name,
    claimName: `workspace-${name}`,
    kubelet,
    create: async () => {
      const made = await stage.create("sandboxes", body);
      // A pod on nobody's node would hold up what owns it.
      stage.removeLater(stage.path("pods", name));
      return made;
    },
    sandbox: () => stage.get("sandboxes", name),
    pod: () => stage.get("pods", name),
    setMode: (operatingMode) => stage.merge("sandboxes", name, { spec: { operatingMode } }),
    patch: (change) => stage.merge("sandboxes", name, change),
    untilReason: async (type, reason, alsoSo = () => true) => {
      const found = await stage.until(
        "sandboxes",
        name,
        (object) => object !== undefined && isSo(object, type, reason) && alsoSo(object),
        `say ${type}/${reason}`,
      );
      return found ?? null;
    },
    untilPod: async (isPodSo, what) =>
      (await stage.until("pods", name, (pod) => pod !== undefined && isPodSo(pod), what)) ?? null,
    open: async () => {
      await play.create();
      await play.untilPod(() => true, "exist");
      await kubelet.run();
      return play.untilReason("Ready", "DependenciesReady");
    },
    noteStatus: async (step) => stage.note(step, statusIn(await play.sandbox())),
  };
  return play;
}

/** A condition of a Sandbox for its current generation. */
export function conditionIn(sandbox: Json | undefined, type: string): Json | undefined {
  return listAt(sandbox, "status", "conditions").find((item) => at(item, "type") === type);
}

/** The status, its conditions sorted by type. */
export function statusIn(sandbox: Json | undefined): Json {
  const status = at(sandbox, "status");
  const conditions = [...listAt(status, "conditions")].sort((a, b) => (textAt(a, "type") < textAt(b, "type") ? -1 : 1));
  return { ...pick(status, "service", "serviceFQDN", "selector", "nodeName", "podIPs"), conditions };
}

export const isTerminating = (object: Json | undefined): boolean =>
  at(object, "metadata", "deletionTimestamp") !== undefined;

function isSo(sandbox: Json, type: string, reason: string): boolean {
  const found = conditionIn(sandbox, type);
  return at(found, "reason") === reason && at(found, "observedGeneration") === at(sandbox, "metadata", "generation");
}
