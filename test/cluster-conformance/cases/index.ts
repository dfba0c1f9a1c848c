import type { ConformanceCase } from "../suite/conformance-case.ts";
import { concurrency } from "./concurrency.ts";
import { deletion } from "./deletion.ts";
import { jsonPatchCases } from "./json-patch.ts";
import { lists } from "./lists.ts";
import { mergePatchCases } from "./merge-patch.ts";
import { metadata } from "./metadata.ts";
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
];
