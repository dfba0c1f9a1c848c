import type { Json } from "./json.ts";

/** One normalised thing that a case saw. */
export interface Entry {
  readonly step: string;
  readonly seen: Json;
}

export type Transcript = readonly Entry[];
