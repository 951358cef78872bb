/** A function of several numbers, and its gradient. */
export type Differentiable = (at: readonly number[]) => {
  readonly value: number
  readonly gradient: readonly number[]
}

/** Maximum number of steps, and the length of the gradient that is small enough. */
const MAX_STEPS = 300
const SMALL = 1e-5

/** Finds a minimum by the BFGS method with backtracking. */
export function minimise(target: Differentiable, size: number): readonly number[] {
  let at: readonly number[] = Array.from({ length: size }, () => 0)
  let here = target(at)
  let inverse = identity(size)
  for (let step = 0; step < MAX_STEPS && Math.sqrt(dot(here.gradient, here.gradient)) > SMALL; step += 1) {
    const direction = inverse.map((row) => -dot(row, here.gradient))
    const slope = dot(direction, here.gradient)
    let length = 1
    let next = moved(at, direction, length)
    let there = target(next)
    while (there.value > here.value + 1e-4 * length * slope && length > 1e-12) {
      length /= 2
      next = moved(at, direction, length)
      there = target(next)
    }
    if (there.value >= here.value) break
    const change = direction.map((value) => value * length)
    const turn = there.gradient.map((value, index) => value - (here.gradient[index] ?? 0))
    inverse = updated(inverse, change, turn)
    at = next
    here = there
  }
  return at
}

function updated(
  inverse: readonly (readonly number[])[],
  change: readonly number[],
  turn: readonly number[],
) {
  const curvature = dot(change, turn)
  if (curvature <= 1e-12) return inverse
  const turned = inverse.map((row) => dot(row, turn))
  const scale = (1 + dot(turn, turned) / curvature) / curvature
  return inverse.map((row, i) =>
    row.map((value, j) => {
      const [si = 0, sj = 0, ti = 0, tj = 0] = [change[i], change[j], turned[i], turned[j]]
      return value + scale * si * sj - (ti * sj + si * tj) / curvature
    }),
  )
}

function identity(size: number): readonly (readonly number[])[] {
  const rows = Array.from({ length: size }, () => Array.from({ length: size }, () => 0))
  return rows.map((row, index) => row.with(index, 1))
}

function moved(at: readonly number[], direction: readonly number[], length: number): number[] {
  return at.map((value, index) => value + length * (direction[index] ?? 0))
}

/** The inner product. */
export function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0
  for (let index = 0; index < a.length; index += 1) sum += (a[index] ?? 0) * (b[index] ?? 0)
  return sum
}
