/** Faults and remediations that real controllers over a simulated disk cannot be brought to, each with its reason. */
export const notProvokable: Readonly<Record<string, string>> = {};

/** Scenarios that are still being written; empty when the suite is whole. */
export const notYet: readonly string[] = [];
