"""Faults that people reported in public, and the test that each of them would fail.

``pytorch#41508`` is issue (or pull request) 41508 of PyTorch; ``d2l-1.0.3`` was seen by running
that release.
"""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CAUGHT = """
core/test_arrays.py::test_integers_and_booleans_count_as_the_default_float: pytorch#14224
core/test_attention.py::test_attention_with_a_mask_is_its_definition:
    transformers#26572 transformers#18057 mlx#2608 rten#1321
core/test_errors.py::test_it_is_turned_away_in_words:
    x-transformers#174 x-transformers#183 pytorch#193728 pytorch#120810 xformers#1089
    pytorch#92554 pytorch#136816 pytorch#141018 tsai#171 mlverse/torch#1205
core/test_attention.py::test_no_nan_enters_the_graph:
    unsloth#9848 transformers#26572 curated-transformers#360
core/test_attention.py::test_gradients_of_gradients_and_of_many_at_once:
    pytorch#116350 pytorch#116348 pytorch#117974 learn2learn#429 pytorch#128971
core/test_attention.py::test_mask_shapes_that_broadcast: pytorch#120810 xformers#1089
core/test_attention.py::test_nan_reaches_what_uses_it: pytorch#101967
core/test_masks.py::test_padding_comes_last_and_has_an_axis_for_the_queries:
    hyunwoongko/transformer#40 hyunwoongko/transformer#32
core/test_multihead.py::test_any_sizes_batches_and_masks: attention-is-all-you-need-pytorch#211
core/test_multihead.py::test_it_is_the_definition_head_by_head:
    ViT-CIFAR#11 DL4Proteins#12 set_transformer#18 dfdx#171
core/test_scores.py::test_queries_and_keys_of_two_lengths:
    pytorch#27623 pytorch#41070 pytorch#120793 d2l-en#2056
core/test_scores.py::test_score_is_its_definition: perceiver-io#9 cntkx#10
core/test_scores.py::test_the_query_is_scaled_before_the_product:
    ultralytics#24990 Paddle#41933 pytorch#60939
core/test_weights.py::test_gradients_are_zero_without_keys_and_at_what_is_hidden:
    tensorflow#11756 pytorch#31829
core/test_weights.py::test_hidden_weights_are_zero_whatever_the_score: d2l-1.0.3-fill
core/test_weights.py::test_masked_softmax_is_the_definition:
    allennlp#890 allennlp#105 apex#1052 apex#1105 fairseq#3575 TorchSharp#1135 pytorch#117939
    pytorch#163026 pytorch#21518 d2l-en#2423 apex#93 flax#982 flax#1527 d2l-1.0.3-in-place
core/test_weights.py::test_masked_softmax_of_any_scores_and_mask: d2l-1.0.3-four-axes
core/test_weights.py::test_softmax_of_any_scores:
    PyTorch-NLP#2 KEQA#2 catalyst#285 attention-is-all-you-need-pytorch#52 fastNLP#254 labml#282
    labml#146
core/test_weights.py::test_softmax_without_an_answer_is_nan: pytorch-2.13-infinite-scores
modules/test_all.py::test_derivatives: pytorch#128971
modules/test_all.py::test_it_compiles_with_dynamic_shapes: pytorch#97158
modules/test_cache.py::test_cached_is_uncached:
    pytorch#103082 pytorch#144858 TinyLLM#17 LLMs-from-scratch#697 llama#899
modules/test_mask_conventions.py::test_every_mask_argument_says_what_true_means:
    x-transformers#164 equinox#463
modules/test_mask_conventions.py::test_true_may_attend_but_in_the_layer_it_is_hidden:
    pytorch#170415 pytorch#170400 pytorch#120668
modules/test_multihead.py::test_a_mask_of_lengths_serves_all_heads_where_batch_and_heads_are_equal:
    mlx-lm#1903
modules/test_multihead.py::test_it_can_be_exported_for_any_batch_and_length: pytorch#156681
modules/test_multihead.py::test_no_dropout_in_eval:
    pytorch#124464 pytorch#99293 torchtune#1791 timm#1978 wenet#2699 torch-harmonics#221
modules/test_multihead.py::test_rows_without_keys_are_zero_with_dropout_too:
    pytorch#152028 pytorch#189045
modules/test_errors.py::test_it_is_turned_away_in_words:
    pytorch#120810 xformers#1089 x-transformers#174 x-transformers#183 detr#499 mmaction2#1271
    LLMs-from-scratch#444 bert#316 pytorch#136816 pytorch#107084 mlverse/torch#1205
modules/test_multihead.py::test_asking_for_the_weights_does_not_change_the_output:
    pytorch#107084 pytorch#86120 transformers#31990 transformers#36096 transformers#38750
modules/test_multihead.py::test_from_torch_gives_the_same_numbers_and_gradients:
    pytorch#170415 pytorch#120668
modules/test_multihead.py::test_the_module_is_the_function:
    pytorch#27623 pytorch#41070 pytorch#120793 d2l-en#2056
modules/test_multihead.py::test_weights_are_per_head_and_before_dropout:
    pytorch#42929 pytorch#33360 pytorch#90842 fast-transformers#131 espnet#2185
../d2lmini/testing/invariants.py::a_later_token_changes_nothing:
    LLMs-from-scratch#1061 keras#23038 keras#23040
../d2lmini/testing/invariants.py::a_query_without_keys_gets_nothing:
    pytorch#41508 pytorch#40932 pytorch#26098 pytorch#42323 pytorch#103963 pytorch#103749
    pytorch#131060 pytorch#133882 unsloth#9848 transformers#26572
../d2lmini/testing/invariants.py::each_sequence_stands_alone:
    pytorch#34060 TabPFN#800 unsloth#9708 pytorch#122959 OmDet#19 movie-gen#8
../d2lmini/testing/invariants.py::it_is_the_definition:
    keras#23038 keras#23040 pytorch-2.13-causal-and-mask pytorch#122959 OmDet#19 movie-gen#8
    attention-is-all-you-need-pytorch#211 TransformerEngine#614 depthcharge#30 pytorch#34537
    pytorch#47583 pytorch#70055 fairseq#3365
test_invariants.py::gradients_are_finite_without_keys: pytorch#41508 pytorch#40932
test_invariants.py::gradients_are_the_slopes: pytorch#133671
../d2lmini/testing/invariants.py::one_at_a_time_is_all_at_once:
    pytorch#103082 pytorch#115111 pytorch#144858 pytorch#108108
"""


@pytest.mark.parametrize(("file", "name"), re.findall(r"^(\S+)::(\w+):", CAUGHT, re.MULTILINE))
def test_the_test_that_catches_it_is_there(file, name):
    assert re.search(rf"^def {name}\(", (TESTS / file).read_text("utf8"), re.MULTILINE)
