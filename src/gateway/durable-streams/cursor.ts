/** The time from which the protocol counts, in Unix ms. */
const EPOCH = Date.UTC(2024, 9, 9)

/** The length of one step of a cursor, in ms. */
const INTERVAL = 20_000

/** Maximum number of steps by which a cursor that is not behind is moved on: an hour. */
const MAX_JITTER = 180

/**
 * The cursor of a response: the number of the current interval, always more than the client's own. So a cache between them never
 * gives a client the same response again and again.
 *
 * @param given The cursor in the request.
 * @param now Unix time in ms.
 */
export function nextCursor(given: string | null, now: number, random: () => number = Math.random): string {
  const current = Math.floor((now - EPOCH) / INTERVAL)
  if (given === null || !/^\d{1,15}$/.test(given) || Number(given) < current) return String(current)
  return String(Number(given) + 1 + Math.floor(random() * MAX_JITTER))
}
