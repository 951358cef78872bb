/**
 * Alert rules: files and objects that are checked, with the place of each problem.
 *
 * @module rivulet/rules
 */
export { defineRules, loadRules, parseRules } from './rule-file/load.ts'
export { RuleError } from './rule-file/problem.ts'
export type { RuleProblem } from './rule-file/problem.ts'
export type { Cel, Duration, Rule, RuleEventType, RuleFile, RuleGroup } from './rule.ts'
export { RuleSet } from './rule-set.ts'
export { runRules } from './run/run-rules.ts'
export type { RunningRules, RunRulesOptions } from './run/run-rules.ts'
export { ruleStatus } from './run/rule-status.ts'
export type { OpenAlert, RuleNumbers, RuleStatus } from './run/rule-status.ts'
export type * from './notify/index.ts'
export { alertmanager, alertWebhook, logAlerts, NotifyError, slack } from './notify/index.ts'
export { testRules } from './rule-tests/test-rules.ts'
export type { RuleCoverage, RuleTestFailure, RuleTestReport, RuleTestResult } from './rule-tests/report.ts'
export { backtest } from './backtest/backtest.ts'
export type { BacktestEvent, BacktestEvents, BacktestOptions } from './backtest/backtest.ts'
export type { BacktestEpisode, BacktestReport, BacktestRule, BacktestUnknown } from './backtest/report.ts'
export type { EventCounts } from './backtest/event-counts.ts'
export { placeHistory } from './backtest/place-history.ts'
export type { PlacedCounts, PlacedHistory, PlaceOptions } from './backtest/place-history.ts'
export { timelineHtml } from './backtest/timeline.ts'
export { placedText } from './backtest/timeline-text.ts'
export type { TimelineOptions } from './backtest/timeline.ts'
export type { AlertEvent } from './evaluate/in-memory.ts'
