/** Shorter values are no secrets, and removing them would make a text unreadable. */
const MIN_SECRET = 4

/**
 * Returns a function that removes secrets from a text: each header value, and its last word, which is the credential of a
 * value such as `Bearer …`.
 */
export function redactor(headers: readonly string[]): (text: string) => string {
  const secrets = headers
    .flatMap((value) => [value.trim(), value.trim().split(/\s+/).at(-1) ?? ''])
    .filter((secret) => secret.length >= MIN_SECRET)
    // The longest first: a shorter one may be a part of it.
    .toSorted((a, b) => b.length - a.length)
  return (text) => secrets.reduce((rest, secret) => rest.replaceAll(secret, '[redacted]'), text)
}
