import { useSyncExternalStore } from 'react'

/** The page to show, from the address after the `#`. */
export type Route =
  | { readonly section: 'overview' | 'alerts' | 'log' }
  | { readonly section: 'monitors'; readonly monitor?: string }
  | { readonly section: 'groups'; readonly group?: string; readonly run?: string }
  | { readonly section: 'runs'; readonly run?: string }
  | { readonly section: 'find-alls'; readonly findAll?: string }
  | { readonly section: 'search'; readonly query: string }
  | { readonly section: 'unknown' }

/** The route of a `location.hash`, such as `#/group/tgrp_1`. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const parts = path.split('/').map(decoded)
  const [section, id, run] = parts
  if (section === undefined || section === '') return { section: 'overview' }
  if (section === 'alerts' || section === 'log') return { section }
  if (section === 'monitors') return { section }
  if (section === 'groups' || section === 'runs' || section === 'find-alls') return { section }
  if (section === 'monitor' && id !== undefined && id !== '') return { section: 'monitors', monitor: id }
  if (section === 'group' && id !== undefined && id !== '') {
    return run === undefined || run === ''
      ? { section: 'groups', group: id }
      : { section: 'groups', group: id, run }
  }
  if (section === 'run' && id !== undefined && id !== '') return { section: 'runs', run: id }
  if (section === 'find-all' && id !== undefined && id !== '') return { section: 'find-alls', findAll: id }
  if (section === 'search') return { section, query: new URLSearchParams(query).get('q') ?? '' }
  return { section: 'unknown' }
}

/** The hash of a route. */
export function hashOf(route: Route): string {
  switch (route.section) {
    case 'overview':
    case 'unknown':
      return '#/'
    case 'monitors':
      return route.monitor === undefined ? '#/monitors' : `#/monitor/${encodeURIComponent(route.monitor)}`
    case 'groups':
      if (route.group === undefined) return '#/groups'
      return `#/group/${[route.group, ...(route.run === undefined ? [] : [route.run])].map(encodeURIComponent).join('/')}`
    case 'runs':
      return route.run === undefined ? '#/runs' : `#/run/${encodeURIComponent(route.run)}`
    case 'find-alls':
      return route.findAll === undefined ? '#/find-alls' : `#/find-all/${encodeURIComponent(route.findAll)}`
    case 'search':
      return route.query === ''
        ? '#/search'
        : `#/search?${new URLSearchParams({ q: route.query }).toString()}`
    default:
      return `#/${route.section}`
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    // A `%` that a user typed.
    return part
  }
}

let current = { hash: '', route: parseRoute('') }

function subscribe(listener: () => void): () => void {
  addEventListener('hashchange', listener)
  return () => removeEventListener('hashchange', listener)
}

function currentRoute(): Route {
  // The same object while the address stays, as `useSyncExternalStore` asks.
  if (location.hash !== current.hash) current = { hash: location.hash, route: parseRoute(location.hash) }
  return current.route
}

/** The route of the page's address. */
export function useRoute(): Route {
  return useSyncExternalStore(subscribe, currentRoute)
}

/** Changes the address without a step in the history, as a search does while its text is typed. */
export function replaceRoute(route: Route): void {
  history.replaceState(null, '', hashOf(route))
  dispatchEvent(new HashChangeEvent('hashchange'))
}
