import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import type { Corpus } from '../corpus/corpus.ts'
import type { Processor } from '../processor/processor.ts'
import { enriched } from './enrich.ts'
import { readEntity } from './entity-text.ts'
import { describe, evaluated, type Evaluator } from './evaluate.ts'
import { exclusionOf } from './exclusion.ts'
import { EFFORTS } from './generators.ts'
import { findCandidates } from './search.ts'
import type { FindAllStore, StoredRun } from './store.ts'

/** How long to wait when the database fails, in ms of the clock. */
const PAUSE = 5_000
/** How often a step of a run is tried, until its error fails the run. */
const ATTEMPTS = 4
/** Maximum number of FindAll runs executed at once. Task runs are executed between their steps. */
const CONCURRENCY = 2

/** Settings of {@link FindAllExecutor}. */
export interface FindAllExecutorOptions {
  readonly store: FindAllStore
  readonly clock: Clock
  readonly corpus: Corpus
  /** Executes enrichments. */
  readonly processor: Processor
  /** Judges the conditions of candidates. */
  readonly evaluator: Evaluator
  /**
   * Called with errors of steps and of the database. The step is repeated 5 s later. A run whose step fails four times in a row
   * fails with `error_occurred`.
   */
  readonly onError: (error: unknown) => void
}

/** Stores the result of a step. */
type Store = () => void

/**
 * Executes FindAll runs in small steps, oldest run first. Each step reads its work from the database and stores its result in
 * one transaction, so that a run continues after its last stored step when the process was killed.
 */
export class FindAllExecutor {
  readonly #options: FindAllExecutorOptions
  /** Aborts each run in execution. */
  readonly #running = new Map<string, AbortController>()
  /** How often the current step of a run has failed. */
  readonly #failures = new Map<string, number>()
  readonly #retries = new Set<() => void>()
  #stopped = true
  #isWakeQueued = false

  constructor(options: FindAllExecutorOptions) {
    this.#options = options
  }

  /** Starts to execute runs, beginning with the runs of an earlier process. */
  start(): void {
    this.#stopped = false
    this.wake()
  }

  /** Executes unfinished runs. Called when a run was added, extended, enriched or cancelled. */
  wake(): void {
    if (this.#stopped || this.#isWakeQueued) return
    this.#isWakeQueued = true
    void setImmediate().then(() => {
      this.#isWakeQueued = false
      this.#fill()
    })
  }

  /** Aborts the current step of a run that is being cancelled. */
  cancel(id: string): void {
    this.#running.get(id)?.abort()
    this.wake()
  }

  /** Stops after the current steps, whose results are not stored. */
  stop(): void {
    this.#stopped = true
    for (const cancel of this.#retries) cancel()
    for (const controller of this.#running.values()) controller.abort()
  }

  #fill(): void {
    if (this.#stopped) return
    try {
      for (const id of this.#options.store.unfinished()) {
        if (this.#running.size >= CONCURRENCY) return
        if (!this.#running.has(id)) void this.#execute(id)
      }
    } catch (error) {
      this.#retry(error, () => this.wake())
    }
  }

  async #execute(id: string): Promise<void> {
    try {
      for (;;) {
        const controller = new AbortController()
        this.#running.set(id, controller)
        // A step may take some ms. Requests and other runs get their turn in between.
        await setImmediate()
        if (this.#stopped) return
        const run = this.#options.store.stored(id)
        if (run === undefined || isOver(run)) break
        const store = await this.#attempt(run, controller.signal)
        if (this.#stopped) return
        // A cancelled run has another next step.
        if (!controller.signal.aborted) store()
        this.#failures.delete(id)
      }
      this.#running.delete(id)
      this.#forgetCredentials()
      this.wake()
    } catch (error) {
      this.#retry(error, () => {
        this.#running.delete(id)
        this.wake()
      })
    }
  }

  /** Resolves with how to store the result of a step. Throws the error of a step to try again; the last one fails the run. */
  async #attempt(run: StoredRun, signal: AbortSignal): Promise<Store> {
    const { store, onError } = this.#options
    try {
      return await this.#step(run, signal)
    } catch (error) {
      if (signal.aborted) return () => undefined
      const failures = (this.#failures.get(run.id) ?? 0) + 1
      this.#failures.set(run.id, failures)
      if (failures < ATTEMPTS) throw error
      onError(error)
      return () => store.end(run.id, 'failed', 'error_occurred')
    }
  }

  async #step(run: StoredRun, signal: AbortSignal): Promise<Store> {
    const { store, corpus, processor, evaluator } = this.#options
    const { id, request, reason } = run
    const effort = EFFORTS[request.generator]
    if (run.status === 'cancelling') return () => store.end(id, 'cancelled', 'user_cancelled')
    if (run.status === 'queued') return () => store.start(id)
    if (!run.isPlanned) {
      await corpus.settled()
      const { objective, entity_type, match_conditions } = request
      const conditions = match_conditions.map(({ description }) => description)
      const queries = [objective, ...conditions, entity_type]
      const { candidates, hasMore } = await findCandidates(corpus, queries, effort.candidates)
      return () => store.plan(id, candidates, hasMore)
    }

    const open = store.unevaluated(id)
    if (open !== undefined) {
      const { rank, candidate } = open
      if (exclusionOf(request)(candidate.name, candidate.url) || store.isDuplicate(id, rank)) {
        return () => store.candidate(id, rank, { ...candidate, match_status: 'discarded' })
      }
      const passages = await readEntity(corpus, candidate.url, effort)
      const verdicts = await evaluator.evaluate(candidate, request, passages, signal)
      return () => store.candidate(id, rank, evaluated(candidate, verdicts))
    }

    const pending = store.unenriched(id)
    if (pending !== undefined) {
      const candidate = await enriched(pending, processor, signal)
      return () => store.enriched(id, pending, candidate)
    }
    if (reason !== undefined) return () => store.end(id, 'completed', reason)

    const next = store.planned(id)
    if (run.matched >= run.matchLimit) return () => store.exhausted(id, 'match_limit_met')
    if (run.misses >= effort.patience) return () => store.exhausted(id, 'low_match_rate')
    if (next === undefined) {
      return () => store.exhausted(id, run.hasMore ? 'low_match_rate' : 'candidates_exhausted')
    }
    const { rank, candidate } = next
    const passages = await readEntity(corpus, candidate.url, EFFORTS.preview)
    const description = describe(candidate.name, passages)
    return () => store.candidate(id, rank, { ...candidate, description })
  }

  #forgetCredentials(): void {
    try {
      if (!this.#options.store.forgetCredentials()) this.#later(() => this.#forgetCredentials())
    } catch (error) {
      this.#retry(error, () => this.#forgetCredentials())
    }
  }

  #retry(error: unknown, step: () => void): void {
    this.#later(step)
    this.#options.onError(error)
  }

  #later(step: () => void): void {
    const cancel = this.#options.clock.schedule(PAUSE, () => {
      this.#retries.delete(cancel)
      if (!this.#stopped) step()
    })
    this.#retries.add(cancel)
  }
}

function isOver({ status }: StoredRun): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}
