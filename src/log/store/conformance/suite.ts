import { AsyncLocalStorage } from 'node:async_hooks'
import {
  checkBoolean,
  checkFunction,
  checkList,
  checkObject,
  checkOneOf,
  checkOptions,
  checkText,
} from '../../../protocol/check.ts'
import { checkedStore } from '../checked-store.ts'
import type { LogStore } from '../contract.ts'
import { sharedPages } from '../shared-pages.ts'
import { testAppending } from './appending.ts'
import { testClaims } from './claims.ts'
import { testClosing } from './closing.ts'
import { testDeadLetters } from './dead-letters.ts'
import { testDuplicates } from './duplicates.ts'
import { testForgetting } from './forgetting.ts'
import { testHostileEvents } from './hostile-events.ts'
import { testInbox } from './inbox.ts'
import { testProcesses } from './processes.ts'
import { testReaders } from './readers.ts'
import { testReading } from './reading.ts'
import { testRetention } from './retention.ts'
import { testSharing } from './sharing.ts'
import { testStats } from './stats.ts'
import { testWaiting } from './waiting.ts'
import type { Area, Open, OpenFreshLog, TestRunner } from './area.ts'

/** The areas of the suite, in the order in which a store is written. */
const CONFORMANCE_AREAS = [
  'claims',
  'appending',
  'duplicates',
  'hostileEvents',
  'reading',
  'waiting',
  'readers',
  'processes',
  'deadLetters',
  'inbox',
  'retention',
  'stats',
  'sharing',
  'forgetting',
  'closing',
] as const

/** An area of the suite. */
type ConformanceArea = (typeof CONFORMANCE_AREAS)[number]

/** What the suite needs of a store. */
export interface StoreHarness {
  /** Name of the store in the names of the tests. */
  readonly name: string
  /** Opens a fresh log, for one test. */
  readonly open: OpenFreshLog
  /** Whether `stats` counts nothing but entries. Default true. */
  readonly isExact?: boolean
  /** The areas to test. Default: all of them. */
  readonly areas?: readonly ConformanceArea[]
}

const AREAS: Readonly<Record<ConformanceArea, (area: Area) => void>> = {
  claims: testClaims,
  appending: testAppending,
  duplicates: testDuplicates,
  hostileEvents: testHostileEvents,
  reading: testReading,
  waiting: testWaiting,
  readers: testReaders,
  processes: testProcesses,
  deadLetters: testDeadLetters,
  inbox: testInbox,
  retention: testRetention,
  stats: testStats,
  sharing: testSharing,
  forgetting: testForgetting,
  closing: testClosing,
}

/**
 * Declares the tests that each store of a log passes, see `docs/reference/stores.md`. They call the store as `openLog` does, with the checks of
 * arguments in front of it.
 *
 * @throws {ArgumentError} for a setting that cannot be right.
 */
export function storeConformance(runner: TestRunner, harness: StoreHarness): void {
  checkObject('runner', runner)
  const { describe, it } = runner
  checkFunction('runner.describe', describe)
  checkFunction('runner.it', it)
  checkOptions('harness', harness ?? null, ['name', 'open', 'isExact', 'areas'])
  const { name, open: openFresh, isExact = true, areas = CONFORMANCE_AREAS } = harness
  checkText('harness.name', name)
  checkFunction('harness.open', openFresh)
  checkBoolean('harness.isExact', isExact)
  checkList('harness.areas', areas)
  for (const each of areas) checkOneOf('harness.areas', each, CONFORMANCE_AREAS)
  const finishing = new AsyncLocalStorage<(() => Promise<void>)[]>()
  const open = opening(openFresh, (finish) => finishing.getStore()?.push(finish))
  const area: Area = {
    describe,
    it: (test, run) =>
      it(test, async () => {
        const finishes: (() => Promise<void>)[] = []
        try {
          await finishing.run(finishes, run)
        } finally {
          for (const finish of finishes.toReversed()) await finish()
        }
      }),
    open,
    isExact,
  }
  describe(name, () => {
    for (const each of areas) AREAS[each](area)
  })
}

/**
 * Opens fresh logs for tests, as `openLog` does. Without a clock, it is always the same time.
 *
 * @param atEnd Called with a function that the end of the test awaits.
 */
export function opening(openFresh: OpenFreshLog, atEnd: (finish: () => Promise<void>) => void): Open {
  return async (clock = () => 1_000, inbox = {}) => {
    const underTest = await openFresh({ clock, inbox })
    atEnd(() => underTest.remove())
    const stores = new Map<LogStore, LogStore>()
    const connect = async (owner: string) => {
      const store = await underTest.connect(owner)
      const log = checkedStore(sharedPages(store))
      stores.set(log, store)
      return log
    }
    return {
      log: await connect('first'),
      connect,
      loseClaims: (log) => underTest.loseClaims(stores.get(log) ?? log),
    }
  }
}
