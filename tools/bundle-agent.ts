// Bundles the guest agent, as every task that starts pods needs it.
import { bundleGuestAgent } from "../services/guest-agent/bundle.ts";

await bundleGuestAgent();
