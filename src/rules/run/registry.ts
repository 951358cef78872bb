/**
 * The key of the state that names the rules which may have states. No rule is called so, and it comes before all of them, so that it is
 * stored before or with the first state of a rule.
 */
export const REGISTRY = '!rules'
