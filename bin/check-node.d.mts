/** The line to print for a Node version; undefined when it is new enough. */
export function whyTooOld(version: string): string | undefined;
export function checkNode(): void;
export const LEAST: readonly [number, number];
