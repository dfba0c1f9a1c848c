import type { ConformanceCase } from "../suite/conformance-case.ts";
import { access } from "./access.ts";
import { concurrency } from "./concurrency.ts";
import { controllerChildren } from "./controller-children.ts";
import { controllerStates } from "./controller-states.ts";
import { deletion } from "./deletion.ts";
import { jsonPatchCases } from "./json-patch.ts";
import { lists } from "./lists.ts";
import { mergePatchCases } from "./merge-patch.ts";
import { metadata } from "./metadata.ts";
import { node } from "./node.ts";
import { otherKinds } from "./other-kinds.ts";
import { pods } from "./pods.ts";
import { productWrites } from "./product-writes.ts";
import { sandboxSchema } from "./sandbox-schema.ts";
import { watches } from "./watches.ts";

/** Every case, by subject. */
export const allCases: readonly ConformanceCase[] = [
  ...concurrency,
  ...jsonPatchCases,
  ...mergePatchCases,
  ...sandboxSchema,
  ...metadata,
  ...lists,
  ...watches,
  ...deletion,
  ...pods,
  ...otherKinds,
  ...access,
  ...controllerChildren,
  ...controllerStates,
  ...productWrites,
  ...node,
];
