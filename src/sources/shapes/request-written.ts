/**
 * Resolves once a request that was made right before is on its way. On Node it is dispatched a microtask after it was made,
 * and undici writes it a turn of the event loop after that; elsewhere `fetch` has it at once.
 */
export async function requestWritten(): Promise<void> {
  if (typeof setImmediate !== 'function') return
  await Promise.resolve()
  await new Promise((resolve) => setImmediate(resolve))
}
