const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** An RFC 1123 subdomain of 1 to 253 characters: what every kind that the bot reads allows as a name. */
export function isObjectName(name: string): boolean {
  return name.length >= 1 && name.length <= 253 && SUBDOMAIN.test(name);
}

/** An RFC 1123 label of 1 to 63 characters. */
export function isNamespaceName(name: string): boolean {
  return LABEL.test(name);
}
