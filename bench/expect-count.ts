/** Fails unless every event was received exactly once. */
export function expectCount(got: number, wanted: number, what = 'events'): void {
  if (got !== wanted) throw new Error(`received ${got} ${what}, expected ${wanted}`)
}
