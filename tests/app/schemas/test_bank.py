"""The bodies of the bank's routes."""

from app.schemas.bank import ProfilePatch


def test_a_profiles_patch_has_at_most_18_fields():
    assert len(ProfilePatch.model_fields) <= 18
