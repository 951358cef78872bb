import type { EventLog } from 'rivulet/log'
import { defineRules, runRules } from 'rivulet/rules'
import type { RunningRules } from 'rivulet/rules'

/** A rule whose alert fires when the service has begun a group of runs, and is resolved when all of them have ended. */
export function runResearchRule(log: EventLog): RunningRules {
  const rules = defineRules([
    {
      alert: 'ResearchRuns',
      on: ['task_group.status'],
      when: 'data.status.is_active',
      resolve: { when: '!data.status.is_active' },
      annotations: { summary: '${data.status.num_task_runs} runs' },
    },
  ])
  return runRules(log, rules, { startAt: 'start' })
}
