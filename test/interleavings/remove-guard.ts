import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { guards } from "./guards.ts";

/** Loaded before everything else (`node --import`): takes the guard named by HOLDFAST_WITHOUT_GUARD out of its source as it is loaded. */
const name = process.env.HOLDFAST_WITHOUT_GUARD;
const guard = guards.find((one) => one.name === name);
if (guard === undefined)
  throw new Error(`there is no guard ${JSON.stringify(name)}; known: ${guards.map((one) => one.name).join(", ")}`);
const target = pathToFileURL(join(import.meta.dirname, "../..", guard.file)).href;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (url !== target) return loaded;
    const source = String(loaded.source);
    if (source.split(guard.find).length !== 2) {
      throw new Error(`${guard.file} does not hold the guard ${guard.name} exactly once: ${guard.find}`);
    }
    process.env.HOLDFAST_GUARD_TAKEN = guard.name; // run.ts refuses to judge a product that still has it.
    return { ...loaded, source: source.replace(guard.find, () => guard.replace) };
  },
});
