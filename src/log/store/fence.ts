/**
 * The right to write under one name, until another claim takes it over. Each claim raises the token, and every write checks
 * it: a suspended process cannot overwrite its successor.
 */
export interface Fence {
  readonly name: string
  readonly token: number
}
