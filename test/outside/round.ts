import { setTimeout as delay } from 'node:timers/promises'
import { World } from './world.ts'
import type { RoundOptions } from './world.ts'

const SECOND = 1_000
const HOUR = 3_600 * SECOND
const YEAR = 365 * 24 * HOUR

/** What may happen, and how often beside the others. */
interface Step {
  readonly weight: number
  readonly isPossible?: (world: World) => boolean
  readonly take: (world: World) => Promise<void>
}

const STEPS: Readonly<Record<string, Step>> = {
  'go on': { weight: 4, take: (world) => world.goOn(800) },
  kill: { weight: 5, take: (world) => world.kill('SIGKILL') },
  stop: { weight: 2, take: (world) => world.kill('SIGTERM') },
  suspend: { weight: 2, take: (world) => world.suspend(world.oneOf([200, 2_500])) },
  'clock jumps': {
    weight: 3,
    take: (world) => {
      const size = world.oneOf([3 * SECOND, 300 * SECOND, HOUR, 40 * 24 * HOUR, YEAR])
      return world.jump(world.oneOf([-1, 1]) * size)
    },
  },
  'restart all': {
    weight: 1,
    take: async (world) => {
      await world.stopAll(world.chance(0.5))
      await delay(world.whole(500))
    },
  },
  'server stops': {
    weight: 1,
    isPossible: ({ isFile }) => !isFile,
    take: (world) => world.cutOff(world.oneOf([100, 2_000])),
  },
  copy: { weight: 2, take: (world) => world.copy() },
  'log put back': { weight: 3, isPossible: ({ hasCopy }) => hasCopy, take: (world) => world.putBack('log') },
  'both put back': {
    weight: 1,
    isPossible: ({ hasCopy }) => hasCopy,
    take: (world) => world.putBack('both'),
  },
  'effects put back': {
    weight: 1,
    isPossible: ({ hasCopy, hasRetention }) => hasCopy && !hasRetention,
    take: (world) => world.putBack('effects'),
  },
  migrate: { weight: 1, take: (world) => world.migrate() },
  'second path': { weight: 1, isPossible: ({ isFile }) => isFile, take: (world) => world.openLinked() },
}

/** What a round has brought. */
export interface RoundResult {
  /** What contradicts the promises. */
  readonly findings: readonly string[]
  readonly events: number
  /** How often each step was taken. */
  readonly counts: Readonly<Record<string, number>>
}

/**
 * Takes steps at random for a time in ms, brings all to an end, and asks the oracle. Ends at the first finding.
 *
 * @param without Names of steps that are not taken.
 */
export async function playRound(
  options: RoundOptions,
  duration: number,
  without: readonly string[] = [],
): Promise<RoundResult> {
  const steps = Object.entries(STEPS).filter(([name]) => !without.includes(name))
  const world = new World(options)
  try {
    await world.begin()
    const end = performance.now() + duration
    while (performance.now() < end && world.findings.length === 0) {
      const [name, step] = nextStep(steps, world)
      world.count(name)
      await step.take(world)
      await world.goOn()
    }
    if (world.findings.length === 0) await world.end()
    return { findings: world.findings, events: world.events, counts: world.counts }
  } finally {
    await world.close()
  }
}

function nextStep(steps: readonly (readonly [string, Step])[], world: World): readonly [string, Step] {
  const possible = steps.filter(([, { isPossible }]) => isPossible?.(world) ?? true)
  let left = world.whole(possible.reduce((sum, [, { weight }]) => sum + weight, 0))
  return possible.find(([, { weight }]) => (left -= weight) < 0) ?? world.oneOf(possible)
}
