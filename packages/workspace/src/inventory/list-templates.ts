import type { Deadline } from "@holdfast/async";
import type { WorkspaceDeps } from "../deps.ts";
import type { ListWish } from "../ports/cluster.ts";

/** One SandboxTemplate, and whether a workspace can be made of it (L10). */
export interface TemplateSummary {
  readonly name: string;
  /** Why no workspace can be made of it; undefined when one can. */
  readonly problem: string | undefined;
  /** An Open that names no template uses it. */
  readonly isDefault: boolean;
  /** Of its first container; undefined when it says none. */
  readonly image: string | undefined;
}

/** A page of the namespace's templates: one request. Throws PAGE_TOKEN_EXPIRED. */
export async function listTemplates(
  deps: WorkspaceDeps,
  wish: ListWish,
  within: Deadline,
): Promise<{ templates: TemplateSummary[]; nextContinue: string | undefined }> {
  const page = await deps.cluster.listTemplates(wish, within);
  const templates = page.templates.map(({ name, image, disk }) => ({
    name,
    image,
    problem: disk.usable ? undefined : disk.why,
    isDefault: name === deps.policy.defaultTemplate,
  }));
  return { templates, nextContinue: page.continueToken };
}
