/** Fails unless all came: a side that loses some, or gets some twice, has no figure. */
export function expectCount(got: number, wanted: number, what = 'events'): void {
  if (got !== wanted) throw new Error(`${got} ${what} came, ${wanted} were to come`)
}
