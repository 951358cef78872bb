import type { TaskRun } from './task.ts'

/** `/v1/tasks/runs/`: the prefix of the source of every run. */
export const RUNS = '/v1/tasks/runs/'

/** Its constructor returns the given object, so that a subclass adds its private fields to it. */
// oxlint-disable-next-line typescript/no-extraneous-class
class Given {
  constructor(object: object) {
    // oxlint-disable-next-line no-constructor-return
    return object
  }
}

/** Tags an event with its run in a private field. A copy of the event, which may have another id, does not inherit the tag. */
class RunTag extends Given {
  readonly #run: TaskRun

  constructor(event: object, run: TaskRun) {
    super(event)
    this.#run = run
  }

  static runOf(event: object): TaskRun | undefined {
    return #run in event ? event.#run : undefined
  }
}

/** Tags an event whose source and id are `/v1/tasks/runs/{run_id}` and `{run_id}:{status}` of the run. */
export function tagRun<Event extends object>(event: Event, run: TaskRun): Event {
  // oxlint-disable-next-line no-new
  new RunTag(event, run)
  return event
}

/**
 * The run of a tagged event, else undefined. Hashing the run's id and status is cheaper than reading the event's source and
 * id, which are concatenated strings.
 */
export function taggedRun(event: object): TaskRun | undefined {
  return RunTag.runOf(event)
}
