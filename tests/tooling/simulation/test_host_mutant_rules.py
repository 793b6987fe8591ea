"""Rules of the mutants: what each makes of host code, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mutants.draw import every_mutant
from mutants.rules import RULES
from mutants.text import mask

# One line of host code for each rule, as 2.6.0 writes it, and what the rule makes of it.
EXAMPLES = [
    (
        "key_part",
        'string key = "f:" + to_string(dim) + getTensorsStringKey({a, b});',
        'string key = "f:" + std::string() + getTensorsStringKey({a, b});',
    ),
    ("key_part", "auto k = getTensorsStringKey({a, b});", "auto k = getTensorsStringKey({a});"),
    ("strides", "x = self.stride(1);", "x = self.stride(0);"),
    ("strides", "x = self.strides();", "x = self.sizes();"),
    ("offset", "[e setBuffer:b offset:t.storage_offset() * 4 atIndex:0];", "[e setBuffer:b offset:0 atIndex:0];"),
    ("offset", "n = t.storage_offset() * t.element_size();", "n = t.storage_offset();"),
    ("cast", "y = castMPSTensor(graph, x, kFloat);", "y = x;"),
    ("cast", 'y = [graph castTensor:x toType:t name:@"c"];', "y = (x);"),
    ("cast", "y = x.to(kFloat);", "y = x;"),
    ("synchronization", "{ stream->synchronize(SyncType::COMMIT); }", "{ stream->synchronize(SyncType::NONE); }"),
    ("synchronization", "{ [commandBuffer waitUntilCompleted]; }", "{ ; }"),
    ("scalar", "y = f(alpha.toDouble());", "y = f(1.0);"),
    ("scalar", "y = add(a, alpha, b);", "y = add(a, at::Scalar(1), b);"),
    ("wrap", "d = maybe_wrap_dim(dim, self.dim());", "d = (dim);"),
    ("gather", "if (needsGather(self)) {}", "if (false) {}"),
    ("gather", "y = self.contiguous();", "y = self;"),
    ("fill", "{ output.copy_(made); }", "{ ; }"),
    ("fill", "y = at::zeros_like(x);", "y = at::empty_like(x);"),
    ("buffer_index", "[e setBytes:&n length:4 atIndex:2];", "[e setBytes:&n length:4 atIndex:1];"),
    ("buffer_index", "mtl_setArgs(e, a, b);", "mtl_setArgs(e, b, a);"),
    ("release", "o = [object retain];", "o = object;"),
    ("release", "[object release];", "[object release]; [object release];"),
    ("macos", "if (is_macos_13_or_newer(V)) {}", "if ((!is_macos_13_or_newer(V))) {}"),
    ("comparison", "if (n < 4) {}", "if (n <= 4) {}"),
    ("condition", "if (x.numel() == 0) {}", "if (!(x.numel() == 0)) {}"),
    ("axis", "[g softMaxWithTensor:x axis:1 name:nil];", "[g softMaxWithTensor:x axis:0 name:nil];"),
    ("axis", "y = [g transposeTensor:x dimension:0 withDimension:1 name:nil];", "y = (x);"),
    (
        "operands",
        "[g subtractionWithPrimaryTensor:a secondaryTensor:b name:nil];",
        "[g subtractionWithPrimaryTensor:b secondaryTensor:a name:nil];",
    ),
    ("flag", "y = f(x, true);", "y = f(x, false);"),
    ("number", "y = n - 1;", "y = n;"),
    ("arguments", "f(beta1, beta2);", "f(beta2, beta1);"),
    ("type", "t = MPSDataTypeInt64;", "t = MPSDataTypeInt32;"),
]


def results(rule: str, code: str) -> Iterator[str]:
    """Give the code as each mutant of one rule leaves it."""
    (chosen_rule,) = (each for each in RULES if each.name == rule)
    for mutant in every_mutant("mps/X.mm", code, [chosen_rule]):
        yield mutant.source(code)


@pytest.mark.parametrize(("rule", "code", "expected"), EXAMPLES)
def test_a_rule_makes_its_fault(rule: str, code: str, expected: str) -> None:
    assert expected in set(results(rule, code))


def test_every_rule_has_an_example() -> None:
    assert {rule for rule, _, _ in EXAMPLES} == {rule.name for rule in RULES}


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_comments_strings_and_kernels_as_text_are_left_alone(rule: str) -> None:
    code = "".join(f"// {example}\n/* {example} */\n" for _, example, _ in EXAMPLES)
    kernel = 'auto lib = R"METAL(\nif (a < b) { x.zero_(); f(beta1, beta2); }\n)METAL";\n'

    assert not list(results(rule, code + kernel))


def test_a_mask_keeps_every_place() -> None:
    whole = 'a("x)//", \'"\'); // "\n#define F(x) \\\n  g(x)\nb;'

    assert len(mask(whole)) == len(whole)
    assert [at for at, character in enumerate(whole) if character == "\n"] == [
        at for at, character in enumerate(mask(whole)) if character == "\n"
    ]
    assert "define" not in mask(whole)
    assert mask(whole).endswith("b;")


def test_a_declaration_is_no_call() -> None:
    assert not list(results("scalar", "void f(const Scalar& alpha, const Scalar& beta) {}"))
    assert not list(results("gather", "static bool needsGather(const Tensor& t) {}"))
    assert not list(results("macos", "bool is_macos_13_or_newer(MacOSVersion v) {}"))


def test_a_mutant_keeps_the_numbers_of_lines() -> None:
    code = "y = f([g castTensor:x\n          toType:t\n            name:nil]);\nz;"

    (found,) = results("cast", code)

    assert found.splitlines()[3] == "z;"


def test_a_mutant_of_another_text_is_refused() -> None:
    (mutant,) = every_mutant("mps/X.mm", "y = x.to(k);", [rule for rule in RULES if rule.name == "cast"])

    with pytest.raises(ValueError, match="is another one"):
        mutant.source("y = z.to(k, 1);"[1:])
