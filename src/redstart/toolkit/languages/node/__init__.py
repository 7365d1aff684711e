"""JavaScript and TypeScript, and the runners of Node.js."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from redstart.core.shell import Environment
from redstart.toolkit.languages.abilities import EnvironmentProblems
from redstart.toolkit.languages.protocol import Language, Read, ReportNames, SuitePlace, SuiteRunner

if TYPE_CHECKING:
    from redstart.toolkit.honesty.controls.alteration import Alterer
    from redstart.toolkit.honesty.examination import GreenPatch
    from redstart.toolkit.honesty.mutation import Mutant
    from redstart.toolkit.honesty.neutral_surroundings import NeutralDriver
    from redstart.toolkit.honesty.tripwires.protocol import Change, Tripwires
    from redstart.toolkit.installs.manager import PackageManager
    from redstart.toolkit.languages.new_program import NewPrograms
    from redstart.toolkit.model_tools.probes import Snippets
    from redstart.toolkit.patching.policy import Protection
    from redstart.toolkit.retrieval.code_reader import CodeReader
    from redstart.toolkit.retrieval.sources import Sources
    from redstart.toolkit.suites.suite_directory import TreeView

_TEST = re.compile(
    r"(?:^|/)(?:[^/]*[.\-_])?(?:tests?|specs?|e2e|cy|bench)\.[cm]?[jt]sx?(?:/|$)"
    r"|(?:^|/)test[.\-_][^/]*\.[cm]?[jt]sx?(?:/|$)"
    r"|(?:^|/)(?:__tests__|__mocks__|__fixtures__|specs?|cypress|e2e)/(?:.*/)?[^/]+\.(?:[cm]?[jt]sx?|json|snap)(?:/|$)"
    r"|(?:^|/)tests?/(?:.*/)?[^/]+\.[cm]?[jt]sx?$",
    re.IGNORECASE,
)
_CONFIGURATION = re.compile(
    r"(?:^|/)(?:package(?:-lock)?\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-(?:lock|workspace)\.yaml|\.pnpmfile\.c?js"
    r"|(?:jest|vitest|vite|ava|karma|playwright|cypress|babel|wdio|web-test-runner|esbuild|rollup|webpack|swc)"
    r"\.?(?:[\w-]*\.)?(?:config|workspace|setup|preset|conf)(?:[.-][\w.-]+)?\.(?:[cm]?[jt]s|json)"
    r"|(?:setup-?tests?|test-?setup|jest-?setup|vitest-?setup|setup-?(?:jest|vitest|mocha))\.[cm]?[jt]sx?"
    r"|\.(?:mocharc|babelrc|swcrc|nycrc|c8rc|taprc|jestrc|node-version|nvmrc|yarnrc)(?:\.[\w.]+)?|mocha\.opts"
    r"|(?:ts|js)config(?:\.[\w.-]+)?\.json)(?:/|$)"
)
"""Files that configure the test runners of Node.js, the discovery of tests, and the build of the code."""

CASE_MARK = re.compile(r" \[#\d+\]$")
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
_TEST_CALL = re.compile(rb"^[ \t]*(?:it|test)(?:\.\w+)*[ \t]*\(", re.MULTILINE)
_TITLE = re.compile(rb"""\b(?:it|test|describe|suite|specify|context)(?:\.\w+)*\(\s*(["'`])(.+?)\1""")


class JavaScriptLanguage(Language):
    name = "JavaScript"
    key = "node"
    suffixes = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
    case_mark = CASE_MARK
    reads_code = deepest_first = True
    runners = ("node", "jest", "vitest", "mocha")
    function_head = "function name(arguments) {"
    program = "node"
    program_name = "Node.js"
    programs = ("node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "jest", "vitest", "mocha", "tap", "ava")

    def is_test_path(self, path: str) -> bool:
        return bool(_TEST.search(path))

    def get_protection(self, path: str) -> Protection | None:
        from redstart.toolkit.patching.policy import Protection

        return Protection.configuration if _CONFIGURATION.search(path) else None

    def find_suite(self, folder: str, paths: Sequence[str], read: Read) -> SuitePlace | None:
        from redstart.toolkit.languages.node.detect import find_suite

        return find_suite(folder, paths, read)

    def find_suites(self, paths: Sequence[str], read: Read) -> tuple[SuitePlace, ...]:
        from redstart.toolkit.languages.node.detect import find_suites

        return find_suites(paths, read)

    def find_started_suite(
        self, folder: str, paths: Sequence[str], read: Read, words: Sequence[str]
    ) -> SuitePlace | None:
        from redstart.toolkit.languages.node.detect import find_named_suite

        return find_named_suite(folder, paths, read, words)

    def build_environment(self, base: Environment, folder: str, environ: Mapping[str, str]) -> Environment:
        from redstart.toolkit.languages.node.environment import with_node

        return with_node(base, folder, environ)

    def count_tests(self, data: bytes) -> int:
        return len(_TEST_CALL.findall(data))

    def count_cases(self, text: str) -> int:
        from redstart.toolkit.languages.node.written_tests import count_cases

        return count_cases(text)

    def explain_invalid_test(self, path: str, text: str) -> str:
        from redstart.toolkit.languages.node.written_tests import explain_invalid_test

        return explain_invalid_test(path, text)

    def list_test_names(self, test_id: str) -> list[str]:
        return [name for part in test_id.split("::")[1:] for name in part.split(" > ")]

    def create_code_reader(self, sources: Sources) -> CodeReader:
        from redstart.toolkit.languages.node.code_reader import ScriptReader

        return ScriptReader(sources)

    def find_unreadable_line(self, path: str, data: bytes) -> int:
        from redstart.toolkit.languages.node.trees import find_syntax_errors

        return next(iter(find_syntax_errors(path, data)), 0) if not path.endswith(_DECLARATIONS) else 0

    @property
    def snippets(self) -> Snippets:
        from redstart.toolkit.languages.node.snippets import JavaScriptSnippets

        return JavaScriptSnippets()

    @property
    def new_programs(self) -> NewPrograms:
        from redstart.toolkit.languages.node.new_program import NodePrograms

        return NodePrograms()

    @property
    def packages(self) -> PackageManager:
        from redstart.toolkit.languages.node.packages import NodePackages

        return NodePackages()

    @property
    def runner(self) -> SuiteRunner:
        from redstart.toolkit.languages.node.runners import NodeRunner

        return NodeRunner()

    @property
    def environment_problems(self) -> EnvironmentProblems:
        from redstart.toolkit.languages.node import problems

        return problems

    @property
    def alterer(self) -> Alterer:
        from redstart.toolkit.languages.node.alterer import JavaScriptAlterer

        return JavaScriptAlterer()

    def create_tripwires(self, change: Change) -> Tripwires:
        from redstart.toolkit.languages.node.tripwires.rules import NodeTripwires

        return NodeTripwires(change)

    def create_neutral_driver(self, patch: GreenPatch, view: TreeView) -> NeutralDriver | None:
        from redstart.toolkit.languages.node.neutral import NodeDriver, can_run_with_node

        return NodeDriver(patch, view) if can_run_with_node(patch.suite) else None

    def create_mutants(self, path: str, text: bytes) -> list[Mutant]:
        from redstart.toolkit.languages.node.mutants import create_node_mutants

        return create_node_mutants(path, text)

    def report_names(self, path: str, data: bytes) -> ReportNames:
        return ReportNames(endings=tuple(title.decode(errors="replace") for _, title in _TITLE.findall(data)))


LANGUAGE = JavaScriptLanguage()
