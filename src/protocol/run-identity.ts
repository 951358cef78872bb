import type { TaskRun } from './task.ts'

/** `/v1/tasks/runs/`: what the source of every run begins with. */
export const RUNS = '/v1/tasks/runs/'

/** Hands on the object that it is given, for a subclass to put its private fields into. */
// oxlint-disable-next-line typescript/no-extraneous-class
class Given {
  constructor(object: object) {
    // oxlint-disable-next-line no-constructor-return
    return object
  }
}

/**
 * Remembers of which run an event was made. The event stays the plain object that it is, and a copy of it, which may have
 * another id, does not inherit the mark.
 */
class Mark extends Given {
  readonly #run: TaskRun

  constructor(event: object, run: TaskRun) {
    super(event)
    this.#run = run
  }

  static runOf(event: object): TaskRun | undefined {
    return #run in event ? event.#run : undefined
  }
}

/** Marks an event whose source and id are those of the run: `/v1/tasks/runs/{run_id}` and `{run_id}:{status}`. */
export function markRun<Event extends object>(event: Event, run: TaskRun): Event {
  // oxlint-disable-next-line no-new
  new Mark(event, run)
  return event
}

/**
 * The run that gave the event its source and id, where that is known. Both are put together of its id and status, and texts
 * that were put together are costly to read: who needs the identity alone reads the parts.
 */
export function markedRun(event: object): TaskRun | undefined {
  return Mark.runOf(event)
}
