export { guestDialler, LinkedGuest } from "./linked-guest.ts";
