import { registerHooks } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { guards } from "./guards.ts";

/** Loaded before the agent (`node --import`): takes the guard named by HOLDFAST_WITHOUT_GUARD out of its source as it is loaded. */
const root = join(import.meta.dirname, "../..");
const name = process.env.HOLDFAST_WITHOUT_GUARD;
const guard = guards.find((one) => one.name === name);
if (guard === undefined)
  throw new Error(`there is no guard ${JSON.stringify(name)}; known: ${guards.map((one) => one.name).join(", ")}`);
const target = pathToFileURL(join(root, guard.file)).href;
// The addon stands in the bundle, not beside the source.
const addons = pathToFileURL(join(root, "services/guest-agent/dist/")).href;

registerHooks({
  resolve(specifier, context, nextResolve) {
    return nextResolve(/^\.\/koffi-\w+\.node$/.test(specifier) ? new URL(specifier, addons).href : specifier, context);
  },
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (url !== target) return loaded;
    const source = String(loaded.source);
    if (source.split(guard.find).length !== 2) {
      throw new Error(`${guard.file} does not hold the guard ${guard.name} exactly once: ${guard.find}`);
    }
    return { ...loaded, source: source.replace(guard.find, () => guard.replace) };
  },
});
