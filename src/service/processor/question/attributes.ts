/** A property of things that questions often ask for, whose values have a known form and stand in known parts of documents. */
type AttributeName =
  | 'licence'
  | 'author'
  | 'version'
  | 'runtime'
  | 'installation'
  | 'homepage'
  | 'repository'
  | 'keywords'
  | 'definition'
  | 'name'

/** An attribute: the words that ask for it, and the forms in which it is stated. */
export interface Attribute {
  readonly name: AttributeName
  /** Matches a question that asks for it. */
  readonly asks: RegExp
  /** Words that such questions have besides. Any other word means that something else is asked. */
  readonly besides: RegExp
  /** The keys of a manifest that state it. */
  readonly keys: readonly string[]
}

/** Words of any question. */
const FRAME =
  /\b(?:what|which|who|whom|whose|where|when|how|why|is|are|was|were|be|been|do|does|did|has|have|had|can|could|should|must|will|would|may|i|you|we|one|it|its|their|the|a|an|of|for|in|on|by|to|from|with|at|as|under|and|or|that|this|there|please|tell|give|show|name|names|named|state|stated|me|my|full|exact|current|currently|package|packages|library|module|project|tool|software|such|like|e\.?g|i\.?e|answer|value|field|string|text|according|documents?|documentation|docs|readme|manifest|package\.json|npm|one sentence|short|only|just|s)\b/gi

/** The attributes, more specific ones first. */
const ATTRIBUTES: readonly Attribute[] = [
  {
    name: 'runtime',
    asks: /(?=.*\b(?:node(?:\.?js)?|engines?|runtime)\b)(?=.*\b(?:versions?|minimum|min|lowest|oldest|earliest|requires?|required|needs?|needed|supports?|supported|runs?|engines?|at least)\b)/is,
    besides:
      /\b(?:node(?:\.?js)?|js|engines?|runtimes?|versions?|minimum|minimal|min|lowest|oldest|earliest|smallest|least|requires?|required|requirement|requirements|needs?|needed|necessary|supports?|supported|runs?|run|use|used|major|number|semver|range|newer|later|work|works|declares?|declared|specif(?:y|ies|ied)|expects?|javascript|integer|that|still|compatible|allowed|stated|if|accepts?|accepted)\b/gi,
    keys: ['engines.node'],
  },
  {
    name: 'licence',
    asks: /\blicen[cs](?:e|es|ed|ing)\b/i,
    besides:
      /\blicen[cs](?:e|es|ed|ing)\b|\b(?:published|publish|released|distributed|available|used|use|uses|terms|covered|covers|legal|open[ -]?source|spdx|identifier|id|identifiers|kind|type|sort|ids?|come|comes|carry|carries|apply|applies|governs?|code|source|MIT|ISC|BSD|Apache|2\.0|offered|ship|ships|shipped|licensed|own|declares?|declared|short)\b/gi,
    keys: ['license'],
  },
  {
    name: 'author',
    asks: /\b(?:authors?|authored|creators?|written by|who (?:originally )?(?:wrote|made|created|creates|develops|developed|maintains|maintain|built|is behind|writes|authored)|maintainers?|developers?)\b|\bwho\b.*\b(?:made|written|created|maintained|developed|built|authored) by\b|\bby whom\b/i,
    besides:
      /\b(?:authors?|authored|creators?|wrote|written|writes|made|created|creates|create|develops?|developed|maintains?|maintained|built|behind|maintainers?|developers?|person|people|human|original|originally|main|credited|listed|company|organi[sz]ation|first|last|surname)\b/gi,
    keys: ['author'],
  },
  {
    name: 'repository',
    asks: /\b(?:repositor(?:y|ies)|repo|source code|git ?hub|gitlab|sources?)\b/i,
    besides:
      /\b(?:repositor(?:y|ies)|repo|source|sources|code|git ?hub|gitlab|git|url|link|address|web|host|hosted|live|lives|found|find|kept|located|available|page|browse|see|developed|look|get|uri|https?)\b/gi,
    keys: ['repository'],
  },
  {
    name: 'homepage',
    asks: /\b(?:home ?-?pages?|web ?-?sites?|web ?page|official (?:site|page))\b|\bsite\b/i,
    besides:
      /\b(?:home ?-?pages?|web ?-?sites?|web|sites?|pages?|official|project|url|link|address|found|find|uri|online|located|https?)\b/gi,
    keys: ['homepage'],
  },
  {
    name: 'installation',
    asks: /\b(?:install(?:s|ed|ation|ing)?|add(?:ed|ing)? (?:it )?to (?:a|my|the|your) project)\b/i,
    besides:
      /\b(?:install(?:s|ed|ation|ing)?|commands?|run|runs|npm|yarn|pnpm|bun|deno|jsr|add|added|adding|project|shell|line|terminal|cli|get|use|used|using|way|latest|type)\b/gi,
    keys: [],
  },
  {
    name: 'version',
    asks: /\bversions?\b|\b(?:latest|newest|current) release\b/i,
    besides:
      /\b(?:versions?|release|latest|newest|recent|most|installed|described|number|here|these|cover|covers|semver|now|documented)\b/gi,
    keys: ['version'],
  },
  {
    name: 'keywords',
    asks: /\b(?:keywords?|tags)\b/i,
    besides: /\b(?:keywords?|tags?|list|listed|declares?|declared|has)\b/gi,
    keys: ['keywords'],
  },
  {
    name: 'definition',
    asks: /\b(?:what (?:is|are|does|do|it is|it does)|what .{0,40} (?:is|are|does|do)\s*$|description|describe|purpose|definition|define|summary|overview|about|explain|introduce|used for)\b|^\s*$/i,
    besides:
      /\b(?:description|describe|describes|purpose|definition|define|defines|summary|summari[sz]e|overview|about|explain|do|used|use|meant|good|kind|thing|brief|briefly|sentences?|introduce|main|goal|aim|intro|introduction|mean|means|detail|exactly|short|words|few|is|does)\b/gi,
    keys: ['description'],
  },
]

/** The name of a thing that a question describes. */
export const NAME: Attribute = {
  name: 'name',
  asks: /\b(?:which|what|name)\b/i,
  besides: /\b(?:which|what|name|package|library|lets?|can|me|my)\b/gi,
  keys: ['name'],
}

/**
 * The attribute that a question asks for; undefined if it asks for something else too. Names of things must be removed from the
 * question.
 */
export function attributeOf(question: string): Attribute | undefined {
  return ATTRIBUTES.find(({ asks, besides }) => {
    if (!asks.test(question)) return false
    const rest = question.replace(besides, ' ').replace(FRAME, ' ')
    return !/[\p{L}\p{N}]{2}/u.test(rest)
  })
}
